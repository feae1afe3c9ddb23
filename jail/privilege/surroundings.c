#define _GNU_SOURCE
#include "surroundings.h"

#include "fd.h"
#include "file.h"
#include "mountinfo.h"
#include "privilege.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/utsname.h>

bool read_first_line(const char *path, char *buf, size_t len)
{
	scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	ssize_t   n  = fd < 0 ? -1 : read(fd, buf, len - 1);

	if (n < 0)
		return false;
	buf[n] = 0;
	buf[strcspn(buf, "\n")] = 0;
	return true;
}

long long read_number_file(const char *path)
{
	char line[32], *end;
	long long value;

	if (!read_first_line(path, line, sizeof line))
		return -1;
	value = strtoll(line, &end, 10);
	return end == line || *end ? -1 : value;
}

static bool is_env_equal(const char *name, const char *value)
{
	const char *have = getenv(name);

	return have && (!value || strcmp(have, value) == 0);
}

static bool path_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

/* Container images are also installed on plain disks, with their marker file: it counts only on an overlay root. */
static bool is_root_an_overlay(void)
{
	struct statfs s;

	return statfs("/", &s) == 0 && s.f_type == OVERLAYFS_SUPER_MAGIC;
}

/* The most specific first: a pod consists of containers, and a container may run systemd. */
static enum where detect_container(const char *kernel)
{
	enum { FIRST_GROUP_NS = 0xEFFFFFFBu }; /* PROC_CGROUP_INIT_INO */
	struct stat st;

	if (is_env_equal("KUBERNETES_SERVICE_HOST", NULL))
		return WHERE_KUBERNETES;
	if ((path_exists("/run/.containerenv") && is_root_an_overlay()) || is_env_equal("container", "podman"))
		return WHERE_PODMAN;
	if ((path_exists("/.dockerenv") && is_root_an_overlay()) || is_env_equal("container", "docker"))
		return WHERE_DOCKER;
	if (is_env_equal("container", "systemd-nspawn"))
		return WHERE_NSPAWN;
	if (is_env_equal("container", "lxc"))
		return WHERE_LXC;
	/* Processes of the host are in the initial cgroup namespace; container runtimes give every container another one. */
	if (stat("/proc/self/ns/cgroup", &st) == 0 && st.st_ino != FIRST_GROUP_NS)
		return WHERE_CONTAINER;
	if (is_env_equal("INVOCATION_ID", NULL) && !isatty(STDIN_FILENO) && !isatty(STDERR_FILENO))
		return WHERE_SERVICE;
	return strstr(kernel, "microsoft") ? WHERE_WSL : WHERE_PLAIN;
}

/* mountinfo lists mounts below our root: in a chroot, "/" itself is not one of them. */
static bool is_chrooted(void)
{
	scoped_bytes     text = { 0 };
	struct mountinfo m;
	struct err       ignored;
	size_t           at = 0;
	bool             any = false;

	if (file_read(AT_FDCWD, "/proc/self/mountinfo", MIB, &text, &ignored) < 0)
		return false;
	while (mountinfo_next(text.data, text.len, &at, &m)) {
		if (strcmp(m.at, "/") == 0)
			return false;
		any = true;
	}
	return any;
}

#define MONITOR (1ull << CAP_SETUID | 1ull << CAP_SETGID)

void surroundings_detect(struct surroundings *ret)
{
	struct __user_cap_header_struct head   = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct   set[2] = { { 0 } };
	struct utsname                  name;
	struct surroundings             s       = { .uid = geteuid(), .gid = getegid() };
	const struct passwd            *monitor = NULL;
	unsigned                        salt    = 0; /* two pid namespaces may share one cgroup tree */

	if (uname(&name) == 0)
		snprintf(s.kernel, sizeof s.kernel, "%s", name.release);
	s.where           = detect_container(s.kernel);
	s.is_root         = privilege_check_is_root() > 0;
	s.chrooted        = is_chrooted();
	s.seccomp         = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
	s.userns_clone    = (int)read_number_file("/proc/sys/kernel/unprivileged_userns_clone");
	s.apparmor_userns = (int)read_number_file("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
	if (syscall(SYS_capget, &head, set) == 0)
		s.cap_eff = set[0].effective | (uint64_t)set[1].effective << 32;
	for (int cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			s.cap_bnd |= 1ull << cap;
	s.is_monitor = s.uid != 0 && (s.cap_eff & MONITOR) == MONITOR;
	if (s.uid != 0 && !s.is_monitor) /* its account without its capabilities: the unit lacks them, and the probes report it */
		monitor = getpwnam("_brig-keeper");
	s.is_monitor |= monitor && monitor->pw_uid == s.uid;
	(void)!getrandom(&salt, sizeof salt, GRND_NONBLOCK);
	snprintf(s.tag, sizeof s.tag, "brig-doctor-%d-%04x", (int)getpid(), salt & 0xffff);
	*ret = s;
}
