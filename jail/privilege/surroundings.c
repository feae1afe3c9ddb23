#define _GNU_SOURCE
#include "surroundings.h"

#include "fd.h"
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

bool line_read(const char *path, char *buf, size_t len)
{
	scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	ssize_t   n  = fd < 0 ? -1 : read(fd, buf, len - 1);

	if (n < 0)
		return false;
	buf[n] = 0;
	buf[strcspn(buf, "\n")] = 0;
	return true;
}

long long number_read(const char *path)
{
	char line[32], *end;
	long long value;

	if (!line_read(path, line, sizeof line))
		return -1;
	value = strtoll(line, &end, 10);
	return end == line || *end ? -1 : value;
}

static bool env_is(const char *name, const char *value)
{
	const char *have = getenv(name);

	return have && (!value || strcmp(have, value) == 0);
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

/* Container images are also installed on plain disks, with their marker file: it counts only on an overlay root. */
static bool is_layered(void)
{
	struct statfs s;

	return statfs("/", &s) == 0 && s.f_type == OVERLAYFS_SUPER_MAGIC;
}

/* Processes of the host are in the initial cgroup namespace; container runtimes give every container another one. */
static bool has_own_groups(void)
{
	enum { FIRST_GROUP_NS = 0xEFFFFFFBu }; /* PROC_CGROUP_INIT_INO */
	struct stat st;

	return stat("/proc/self/ns/cgroup", &st) == 0 && st.st_ino != FIRST_GROUP_NS;
}

/* The most specific first: a pod consists of containers, and a container may run systemd. */
static enum where find_where(const char *kernel)
{
	if (env_is("KUBERNETES_SERVICE_HOST", NULL))
		return WHERE_KUBERNETES;
	if ((exists("/run/.containerenv") && is_layered()) || env_is("container", "podman"))
		return WHERE_PODMAN;
	if ((exists("/.dockerenv") && is_layered()) || env_is("container", "docker"))
		return WHERE_DOCKER;
	if (env_is("container", "systemd-nspawn"))
		return WHERE_NSPAWN;
	if (env_is("container", "lxc"))
		return WHERE_LXC;
	if (has_own_groups())
		return WHERE_CONTAINER;
	if (env_is("INVOCATION_ID", NULL) && !isatty(STDIN_FILENO) && !isatty(STDERR_FILENO))
		return WHERE_SERVICE;
	return strstr(kernel, "microsoft") ? WHERE_WSL : WHERE_PLAIN;
}

/* mountinfo lists mounts below our root: in a chroot, "/" itself is not one of them. */
static bool find_chroot(void)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char  line[1200], at[4];
	bool  rooted = false, any = false;

	while (f && !rooted && fgets(line, sizeof line, f)) {
		any    = true;
		rooted = sscanf(line, "%*s %*s %*s %*s %3s", at) == 1 && strcmp(at, "/") == 0;
	}
	if (f)
		fclose(f);
	return any && !rooted;
}

static uint64_t read_cap_eff(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct   set[2] = { { 0 } };

	if (syscall(SYS_capget, &head, set) < 0)
		return 0;
	return set[0].effective | (uint64_t)set[1].effective << 32;
}

static uint64_t read_cap_bnd(void)
{
	uint64_t set = 0;

	for (int cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			set |= 1ull << cap;
	return set;
}

static void make_tag(char *tag, size_t len)
{
	unsigned salt = 0; /* two pid namespaces may share one cgroup tree: the pid alone is not unique there */

	if (getrandom(&salt, sizeof salt, GRND_NONBLOCK) < 0)
		salt = 0;
	snprintf(tag, len, "brig-doctor-%d-%04x", (int)getpid(), salt & 0xffff);
}

#define MONITOR (1ull << CAP_SETUID | 1ull << CAP_SETGID)

/* The monitor's account without its capabilities: the unit lacks them, and the probes are to say so. */
static bool is_monitors_account(unsigned uid)
{
	const struct passwd *monitor = getpwnam("_brig-keeper");

	return monitor && monitor->pw_uid == uid;
}

void surroundings_read(struct surroundings *ret)
{
	struct utsname      name;
	struct surroundings s = { .uid = geteuid(), .gid = getegid() };

	if (uname(&name) == 0)
		snprintf(s.kernel, sizeof s.kernel, "%s", name.release);
	s.where           = find_where(s.kernel);
	s.is_root         = privilege_is_root() > 0;
	s.chrooted        = find_chroot();
	s.seccomp         = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
	s.userns_clone    = (int)number_read("/proc/sys/kernel/unprivileged_userns_clone");
	s.apparmor_userns = (int)number_read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
	s.cap_eff         = read_cap_eff();
	s.cap_bnd         = read_cap_bnd();
	s.is_monitor      = s.uid != 0 && ((s.cap_eff & MONITOR) == MONITOR || is_monitors_account(s.uid));
	make_tag(s.tag, sizeof s.tag);
	*ret = s;
}
