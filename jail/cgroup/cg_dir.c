#define _GNU_SOURCE
#include "cg_dir.h"

#include "fd.h"
#include "file.h"
#include "cg_path.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define ASIDE "brig-launcher"

static const struct {
	const char        *name;
	enum cg_controller bit;
} controllers[] = {
	{ "memory", CG_MEMORY },
	{ "pids", CG_PIDS },
	{ "cpu", CG_CPU },
	{ "io", CG_IO },
};

enum { WANTED = CG_MEMORY | CG_PIDS | CG_CPU }; /* a missing io controller is no reason to take a group further up */

static unsigned read_controller_list(int dir, const char *file)
{
	char     text[256];
	unsigned have = 0;

	cg_read_file(dir, file, text, sizeof text);
	for (size_t i = 0; i < ARRAY_LEN(controllers); i++)
		if (cg_list_has(text, controllers[i].name))
			have |= controllers[i].bit;
	return have;
}

/* One by one: the kernel refuses a write of several as a whole when it refuses one of them. */
unsigned cg_switch_controllers(int dir, char sign, unsigned which)
{
	unsigned done = 0;
	char     text[16];

	for (size_t i = 0; i < ARRAY_LEN(controllers); i++) {
		if (!(which & controllers[i].bit))
			continue;
		snprintf(text, sizeof text, "%c%s", sign, controllers[i].name);
		if (file_write_existing(dir, "cgroup.subtree_control", text) == 0)
			done |= controllers[i].bit;
	}
	return done;
}

unsigned cg_enable_controllers(int dir, unsigned wanted)
{
	unsigned on = wanted & read_controller_list(dir, "cgroup.subtree_control");

	return on | cg_switch_controllers(dir, '+', wanted & ~on);
}

/* --- members and owners of a group --- */

static bool is_cgroup_root(int dir)
{
	return faccessat(dir, "cgroup.type", F_OK, 0) < 0;
}

/* Being able to write is not enough: in a user's group, that user could move the processes of root's cells. */
static bool is_cgroup_ours(int dir)
{
	struct stat st;

	return fstat(dir, &st) == 0 && st.st_uid == geteuid() &&
	       faccessat(dir, "cgroup.subtree_control", W_OK, AT_EACCESS) == 0;
}

/* uid 0 of another user namespace is not the host's root: what it may write to was given to it. */
static bool is_host_root_user(void)
{
	enum { FIRST_USER_NS = 0xEFFFFFFDu }; /* PROC_USER_INIT_INO */
	struct stat st;

	return geteuid() == 0 && stat("/proc/self/ns/user", &st) == 0 && st.st_ino == FIRST_USER_NS;
}

static bool is_xattr_set(int dir, const char *name)
{
	char value = 0;

	return fgetxattr(dir, name, &value, 1) == 1 && value == '1';
}

/* systemd sets an extended attribute; other managers give us write access to the group, but not to the one above. */
static bool is_cgroup_delegated(int dir)
{
	if (!is_cgroup_ours(dir))
		return false;
	if (is_xattr_set(dir, "trusted.delegate") || is_xattr_set(dir, "user.delegate"))
		return true;
	return faccessat(dir, "../cgroup.subtree_control", W_OK, AT_EACCESS) < 0;
}

/* "": the group has no processes. A process outside of our pid namespace is listed as 0. */
static bool read_cgroup_members(int dir, char *text, size_t len)
{
	return cg_read_file(dir, "cgroup.procs", text, len);
}

/* 0: the process is gone, or its parent is outside of our pid namespace. */
static long parent_pid_of(long pid)
{
	char path[48], text[1024], *at;
	long parent;

	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	if (!cg_read_file(AT_FDCWD, path, text, sizeof text) || !(at = strrchr(text, ')')))
		return 0;
	return sscanf(at, ") %*c %ld", &parent) == 1 ? parent : 0;
}

/* Children and grandchildren of brigd, our parent: its reader, and the processes that the reader forks. */
static bool is_brigd_descendant(long pid)
{
	long parent = pid > 0 ? parent_pid_of(pid) : 0;

	return parent > 0 && (parent == getppid() || parent_pid_of(parent) == getppid());
}

/*
 * The client of a private brigd: it started brigd, which is in the client's group. It is recognized by its name,
 * because the parent of any other brigd, a shell or systemd, must not be moved. 0: there is none.
 */
static long find_private_client_pid(void)
{
	char path[48], text[64];
	long pid = parent_pid_of(getppid());

	snprintf(path, sizeof path, "/proc/%ld/comm", pid);
	return cg_read_file(AT_FDCWD, path, text, sizeof text) && begins_with(text, "brig") ? pid : 0;
}

static bool holds_only_brig_processes(int dir)
{
	char text[128], *at = text;
	long client = find_private_client_pid(), pid;

	if (!read_cgroup_members(dir, text, sizeof text) || strlen(text) == sizeof text - 1)
		return false;
	for (; *at; at += *at == '\n') {
		pid = strtol(at, &at, 10);
		if (pid != getpid() && pid != getppid() && pid != client && !is_brigd_descendant(pid))
			return false;
	}
	return true;
}

/* --- stepping aside --- */

/* Ends at a process that cannot be moved or seen, which is listed as 0: writing "0" would move the caller. */
static void move_cgroup_members(int from, int to)
{
	char text[128], line[24];
	long pid;

	while (read_cgroup_members(from, text, sizeof text) && (pid = strtol(text, NULL, 10)) > 0) {
		snprintf(line, sizeof line, "%ld", pid);
		if (file_write_existing(to, "cgroup.procs", line) < 0)
			return;
	}
}

static int open_cgroup_dir(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void cg_dir_step_back(int place)
{
	scoped_fd aside = open_cgroup_dir(place, ASIDE);

	if (aside < 0)
		return;
	/* A group with controllers on cannot take processes. */
	cg_switch_controllers(place, '-', read_controller_list(place, "cgroup.subtree_control"));
	move_cgroup_members(aside, place);
	unlinkat(place, ASIDE, AT_REMOVEDIR);
}

/* For each process that is moved, the kernel waits for an RCU grace period. */
static void move_to_aside_group(int place)
{
	scoped_fd aside = -1;

	if (mkdirat(place, ASIDE, 0755) < 0 && errno != EEXIST)
		return;
	aside = open_cgroup_dir(place, ASIDE);
	if (aside >= 0)
		move_cgroup_members(place, aside);
}

/* A user's systemd before 254 marks nothing: for any but the host's root a group that it owns counts as delegated. */
static bool may_move_to_aside_group(int dir, bool delegated)
{
	return is_cgroup_ours(dir) && (delegated || !is_host_root_user()) && !is_cgroup_root(dir) &&
		holds_only_brig_processes(dir);
}

/* --- choosing --- */

static bool can_hand_out_controllers(int dir)
{
	char first[2];

	if (!is_cgroup_ours(dir))
		return false;
	return is_cgroup_root(dir) || (read_cgroup_members(dir, first, sizeof first) && !*first);
}

static int count_wanted_controllers(unsigned controllers_on)
{
	return __builtin_popcount(controllers_on & WANTED);
}

static void keep_better_cgroup(struct cg_dir *best, const char *path, int *dir)
{
	unsigned offers = read_controller_list(*dir, "cgroup.controllers");

	if (best->fd >= 0 && count_wanted_controllers(offers) <= count_wanted_controllers(best->offers))
		return;
	fd_closep(&best->fd);
	*best = (struct cg_dir){ .offers = offers, .is_top = is_cgroup_root(*dir) };
	snprintf(best->path, sizeof best->path, "%s", path);
	best->fd = fd_take(dir);
}

/* Cuts the last name off the path; false at the mount. */
static bool cut_last_path_name(char *path, const char *mount)
{
	char *slash = strrchr(path + strlen(mount), '/');

	if (slash)
		*slash = 0;
	return slash;
}

int cg_dir_open(const char *mount, const char *own, struct cg_dir *ret)
{
	struct cg_dir best = { .fd = -1 };
	char          path[2 * CG_PATH_MAX];
	bool          is_own = true, is_last = false, is_busy = false;

	if (snprintf(path, sizeof path, "%s%s", mount, own) >= (int)sizeof path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	/* We have stepped aside already: the group above is the one we came from. */
	if (strcmp(strrchr(path, '/') + 1, ASIDE) == 0)
		cut_last_path_name(path, mount);
	do {
		scoped_fd dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (dir < 0)
			break;
		is_last = is_cgroup_delegated(dir) || strlen(path) == strlen(mount);
		if (is_own && may_move_to_aside_group(dir, is_last))
			move_to_aside_group(dir);
		is_busy = is_last && is_cgroup_ours(dir);
		if (can_hand_out_controllers(dir))
			keep_better_cgroup(&best, path, &dir);
		is_own = false;
	} while (!is_last && count_wanted_controllers(best.offers) < count_wanted_controllers(WANTED) &&
		 cut_last_path_name(path, mount));
	if (best.fd < 0) {
		errno = is_busy ? EBUSY : EACCES;
		return -1;
	}
	*ret = best;
	return 0;
}

void cg_dir_remove_brig_group(int base, bool v2)
{
	scoped_fd above = openat(base, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (above >= 0 && unlinkat(above, "brig", AT_REMOVEDIR) == 0 && v2)
		cg_dir_step_back(above);
}
