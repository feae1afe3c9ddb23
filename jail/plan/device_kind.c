#include "device_kind.h"

#include "file.h"
#include "mountinfo.h"

#include <fcntl.h>
#include <string.h>

bool device_is_kernel_file_system(unsigned major, unsigned minor)
{
	static const char *const types[] = { "proc",  "sysfs",   "cgroup",     "cgroup2", "debugfs",
		                             "tracefs", "securityfs", "bpf",     "efivarfs" };

	scoped_bytes     text = { 0 };
	struct mountinfo m;
	struct err       ignored;
	size_t           at = 0;

	if (file_read(AT_FDCWD, "/proc/self/mountinfo", 4 * MIB, &text, &ignored) < 0)
		return false;
	while (mountinfo_next(text.data, text.len, &at, &m))
		for (size_t i = 0; m.major == major && m.minor == minor && i < ARRAY_LEN(types); i++)
			if (strcmp(m.type, types[i]) == 0)
				return true;
	return false;
}
