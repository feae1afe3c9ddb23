#include "policy_file.h"

#include "fd.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static int read_open(int fd, const char *path, char **text, size_t *len, struct err *e)
{
	struct bytes bytes;
	struct stat  st;

	if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
		return err_set(e, ERR_BAD_SPEC, "%s: not a regular file", path);
	if (file_read_fd(fd, path, POLICY_SOURCE_MAX, &bytes, e) < 0)
		return -1;
	*text = bytes.data;
	*len  = bytes.len;
	return 0;
}

int policy_file_read(void *context, const char *name, char **text, size_t *len, struct err *e)
{
	for (const char *const *dir = context; *dir; dir++) {
		char path[4096];

		if (!**dir || snprintf(path, sizeof path, "%s/%s.policy", *dir, name) >= (int)sizeof path)
			continue;
		scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* a fifo must not hold us up */
		if (fd >= 0)
			return read_open(fd, path, text, len, e);
		if (errno != ENOENT)
			return err_sys(e, "open %s", path);
	}
	return err_set(e, ERR_MISSING, "no policy %s.policy beside the profiles", name);
}
