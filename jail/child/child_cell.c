/* child_cell.c - the steps of PID 1: an empty cell is built, then PID 1 becomes brig-init */
#define _GNU_SOURCE
#include "child.h"
#include "file.h"
#include "protocol.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

/*
 * PID 1 is a clone of a process that watches other cells, too. Copies of that process's descriptors would keep end of
 * file from those cells and from this one.
 */
static int cell_close_descriptors(struct child_ctx *c)
{
	int    keep[5 + CG_TREES_MAX + MOUNT_SHOWN_MAX] = { c->build.root_fd, c->report_fd, c->build.init_fd, c->build.slot_fd, c->build.user_ns_fd };
	size_t n                                        = 5;

	for (int i = 0; i < c->join_len; i++)
		keep[n++] = c->join_fd[i];
	for (size_t i = 0; i < MOUNT_SHOWN_MAX; i++)
		keep[n++] = c->build.shown_fd[i];
	return child_sys(fd_close_all_but(keep, n));
}

/*
 * The signal covers the steps up to own-files: the kernel clears it when a process changes its ids.
 * brig-init arms it anew. A launcher that dies in between, or before the first call here, is noticed
 * by the hang-up of its socket: no other process may hold that end.
 */
static int cell_die_with_parent(struct child_ctx *c)
{
	struct pollfd launcher = { .fd = c->report_fd };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || poll(&launcher, 1, 0) < 0)
		return -errno;
	return launcher.revents & POLLHUP ? -EPIPE : 0;
}

/*
 * If no control group limits the cell's memory, the OOM killer of the host takes the cell first. The file belongs to
 * root while the process is not dumpable.
 */
static int cell_set_max_oom_score(struct child_ctx *c)
{
	int fd, r;

	if (!c->build.is_oom_target)
		return 0;
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	r  = fd < 0 ? -errno : 0;
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (r == 0 && write(fd, "1000", 4) != 4)
		r = -errno;
	if (fd >= 0)
		close(fd);
	return r == -ENOENT ? 0 : r;
}

/* Files made from here on belong to PID 1's id. Root of its user namespace, entered later, has no power over mounts. */
static int cell_set_file_owner(struct child_ctx *c)
{
	if (setresgid(c->build.owner_id, c->build.owner_id, c->build.owner_id) < 0)
		return -errno;
	setfsuid(c->build.owner_id);
	return (unsigned)setfsuid(c->build.owner_id) == c->build.owner_id ? 0 : -EPERM;
}

static int cell_unshare_cgroup_namespace(struct child_ctx *c)
{
	(void)c;
	return child_sys(unshare(CLONE_NEWCGROUP));
}

static int cell_make_mounts_private(struct child_ctx *c)
{
	(void)c;
	return child_sys(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
}

/* --- mounts --- */

/* Opens a path below the new root. It cannot lead out: no symbolic link is followed. */
static int open_below_new_root(const struct child_ctx *c, const char *path, uint64_t flags, uint64_t mode)
{
	struct open_how how = {
		.flags   = flags | O_CLOEXEC | O_NOFOLLOW,
		.mode    = mode,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return openat2(c->build.root_fd, path, &how, sizeof how);
}

/* Closes `tree`, also after a failure. */
static int attach_mount(const struct child_ctx *c, const struct mount_step *m, int tree)
{
	int at = open_below_new_root(c, m->to, O_PATH, 0);
	int r  = at < 0 ? -errno : 0;

	if (r == 0)
		r = child_sys(move_mount(tree, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
	if (at >= 0)
		close(at);
	close(tree);
	return r;
}

struct option {
	const char *key, *value;
};

static int mount_new_fs(const struct child_ctx *c, const struct mount_step *m, const char *type, const struct option *options)
{
	int fs = fsopen(type, FSOPEN_CLOEXEC), tree, r = 0;

	if (fs < 0)
		return -errno;
	for (; options->key && r == 0; options++)
		r = child_sys(fsconfig(fs, FSCONFIG_SET_STRING, options->key, options->value, 0));
	if (r == 0)
		r = child_sys(fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0));
	tree = r == 0 ? fsmount(fs, FSMOUNT_CLOEXEC, (unsigned)mount_step_attrs(m)) : -1;
	if (r == 0 && tree < 0)
		r = -errno;
	close(fs);
	return r < 0 ? r : attach_mount(c, m, tree);
}

/* Decimal without stdio. */
static const char *format_decimal(uint64_t value, char *end)
{
	*end = 0;
	do
		*--end = (char)('0' + value % 10);
	while (value /= 10);
	return end;
}

static int mount_tmpfs(const struct child_ctx *c, const struct mount_step *m)
{
	char                size[24], inodes[24];
	const struct option options[] = {
		{ "size", format_decimal(m->bytes, size + sizeof size - 1) },
		{ "nr_inodes", format_decimal(m->inodes, inodes + sizeof inodes - 1) },
		{ "mode", "1777" }, /* sticky: the program cannot replace main.py, which belongs to PID 1 */
		{ NULL, NULL },
	};

	return mount_new_fs(c, m, "tmpfs", options);
}

/* Each devpts mount is a new instance: it has no terminals of the host or of other cells. */
static int mount_devpts(const struct child_ctx *c, const struct mount_step *m)
{
	char                max[24];
	const struct option options[] = {
		{ "mode", "0600" },
		{ "ptmxmode", "0666" },
		{ "max", format_decimal(MOUNT_TERMINALS_MAX, max + sizeof max - 1) },
		{ NULL, NULL },
	};

	return mount_new_fs(c, m, "devpts", options);
}

static int mount_shown_file(const struct child_ctx *c, const struct mount_step *m)
{
	struct statx st;
	int          r;

	if (strcmp(m->to, MOUNT_LAYER) == 0) /* a place of the rootfs */
		return attach_mount(c, m, c->build.shown_fd[m->shown]);
	if (file_stat_type(c->build.shown_fd[m->shown], &st) < 0)
		return -errno;
	r = S_ISDIR(st.stx_mode) ? mkdirat(c->build.root_fd, m->to, 0755) : mknodat(c->build.root_fd, m->to, S_IFREG | 0444, 0);
	return r < 0 ? -errno : attach_mount(c, m, c->build.shown_fd[m->shown]);
}

static int apply_mount_step(const struct child_ctx *c, const struct mount_step *m)
{
	static const struct option of_proc[] = { { "hidepid", "invisible" }, { "subset", "pid" }, { NULL, NULL } };

	switch (m->kind) {
	case MOUNT_ROOT:
		return child_sys(move_mount(c->build.root_fd, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH));
	case MOUNT_DEVICE: /* both come with the root (base_mounts.h) */
	case MOUNT_TRUST:
		return 0;
	case MOUNT_PROC:
		return mount_new_fs(c, m, "proc", of_proc);
	case MOUNT_TMPFS:
		return mount_tmpfs(c, m);
	case MOUNT_TERMINALS:
		return mount_devpts(c, m);
	case MOUNT_SHOWN:
		return mount_shown_file(c, m);
	}
	return -EINVAL;
}

static int cell_apply_mount_plan(struct child_ctx *c)
{
	for (size_t i = 0; i < c->build.mounts->n; i++) {
		int r;

		c->detail = (int)i;
		r         = apply_mount_step(c, &c->build.mounts->step[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- what the program finds --- */

/* Copies a sealed memory file to a new file below the new root. */
static int copy_memfd_to_file(const struct child_ctx *c, const char *path, int from, uint32_t len)
{
	char *text = mmap(NULL, len, PROT_READ, MAP_PRIVATE, from, 0);
	int   fd, r;

	if (text == MAP_FAILED)
		return -errno;
	fd = open_below_new_root(c, path, O_WRONLY | O_CREAT | O_EXCL, 0444);
	r  = fd < 0 ? -errno : child_write_all(fd, text, len);
	if (fd >= 0 && close(fd) < 0 && r == 0)
		r = -errno;
	munmap(text, len);
	return r;
}

/* The program has the reading end of stdin, and the writing end of every other pipe. */
static int make_stdio_pipes(int fds[PREPARED_FDS])
{
	static const struct {
		int program, client;
		bool reads;
	} rows[] = {
		{ PREPARED_OUT,    PREPARED_CLIENT,     false },
		{ PREPARED_ERR,    PREPARED_CLIENT + 1, false },
		{ PREPARED_IN,     PREPARED_CLIENT + 2, true },
		{ PREPARED_RESULT, PREPARED_CLIENT + 3, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int ends[2];

		if (pipe2(ends, O_CLOEXEC) < 0)
			return -errno;
		fds[rows[i].program] = ends[!rows[i].reads];
		fds[rows[i].client]  = ends[rows[i].reads];
	}
	return 0;
}

/* The pipes belong to the program's id: it opens /dev/stdout through /proc, where the kernel compares the ids. */
static int make_pipes_as_program(const struct child_ctx *c, int fds[PREPARED_FDS])
{
	int r;

	setfsuid(c->build.pipes_id);
	setfsgid(c->build.pipes_id);
	if ((unsigned)setfsuid(c->build.pipes_id) != c->build.pipes_id || (unsigned)setfsgid(c->build.pipes_id) != c->build.pipes_id)
		return -EPERM;
	r = make_stdio_pipes(fds);
	setfsuid(c->build.owner_id);
	setfsgid(c->build.owner_id);
	return r;
}

static int open_writable_mounts(int fds[PREPARED_FDS])
{
	static const char *const paths[CELL_MOUNTS] = { "/tmp", "/dev/shm", "/workspace" };

	for (int i = 0; i < CELL_MOUNTS; i++) {
		fds[PREPARED_MOUNTS + i] = open(paths[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fds[PREPARED_MOUNTS + i] < 0)
			return -errno;
	}
	return 0;
}

/* The fork writes main.py later, through the descriptor that is made here: it could not open the file for writing. */
static int cell_make_code_and_pipes(struct child_ctx *c)
{
	int fds[PREPARED_FDS], r;

	fds[PREPARED_CODE] = open_below_new_root(c, "workspace/main.py", O_WRONLY | O_CREAT | O_EXCL, 0444);
	r                  = fds[PREPARED_CODE] < 0 ? -errno : make_pipes_as_program(c, fds);
	if (r == 0)
		r = open_writable_mounts(fds);
	return r < 0 ? r : child_send_report(c, CHILD_PREPARED, fds, PREPARED_FDS);
}

static int zygote_write_code(struct child_ctx *c)
{
	return copy_memfd_to_file(c, "workspace/main.py", c->zygote.code_fd, c->zygote.code_len);
}

static int zygote_write_extension(struct child_ctx *c)
{
	return copy_memfd_to_file(c, "workspace/zygote.so", c->zygote.extension_fd, c->zygote.extension_len);
}

/* Pivot onto itself, then detach what lies beneath: no put_old directory to forget, no way back. */
static int cell_enter_root(struct child_ctx *c)
{
	if (fchdir(c->build.root_fd) < 0 || pivot_root(".", ".") < 0 || umount2(".", MNT_DETACH) < 0)
		return -errno;
	return child_sys(chdir("/"));
}

static int cell_set_hostname(struct child_ctx *c)
{
	static const char name[] = "brig";

	(void)c;
	if (sethostname(name, sizeof name - 1) < 0)
		return -errno;
	return child_sys(setdomainname("", 0));
}

/* Processes that the program leaves behind become children of PID 1; with SIG_IGN the kernel reaps them. */
static int cell_ignore_orphans(struct child_ctx *c)
{
	(void)c;
	return signal(SIGCHLD, SIG_IGN) == SIG_ERR ? -errno : 0;
}

/* First to numbers from 16 up, so that no dup2() overwrites one, then to those that brig-init expects. */
static int cell_place_init_descriptors(struct child_ctx *c)
{
	enum { CLEAR_OF_LOW = 16 };
	const int from[] = { c->build.slot_fd, c->build.init_fd, c->report_fd };
	int       high[ARRAY_LEN(from)];

	for (size_t i = 0; i < ARRAY_LEN(from); i++) {
		high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, CLEAR_OF_LOW);
		if (high[i] < 0)
			return -errno;
	}
	c->build.init_fd   = high[1];
	c->report_fd = high[2]; /* for reports until the exec, which closes it; brig-init has INIT_FD_LIFE */
	if (dup2(c->report_fd, INIT_FD_LIFE) < 0 || dup2(high[0], INIT_FD_SLOT) < 0)
		return -errno;
	if (close_range(0, 2, 0) < 0)
		return -errno;
	return child_sys(close_range(INIT_FD_SLOT + 1, ~0u, CLOSE_RANGE_CLOEXEC));
}

/* It owns no other namespace of the cell: root in it has no power over the cell's mounts, network or host name. */
static int cell_enter_user_namespace(struct child_ctx *c)
{
	return child_sys(setns(c->build.user_ns_fd, CLONE_NEWUSER));
}

static int cell_exec_init(struct child_ctx *c)
{
	char *const none[] = { NULL };

	return child_sys(execveat(c->build.init_fd, "", none, none, AT_EMPTY_PATH));
}

/* clang-format off */
/* Read top to bottom: the order is the security argument. */
const struct child_step child_cell_steps[] = {
	{ "close-descriptors",     cell_close_descriptors,        "first, so that nothing of another cell stays open" },
	{ "die-with-parent",       cell_die_with_parent,          "PID 1 ends with the process that builds the cell" },
	{ "first-victim",          cell_set_max_oom_score,        "where no control group limits memory; needs the host's /proc" },
	{ "join-groups",           child_join_cgroups,            "before it allocates memory, so that all of it is counted" },
	{ "group-namespace",       cell_unshare_cgroup_namespace, "after joining, else the namespace would show the host's path" },
	{ "own-files",             cell_set_file_owner,           "files made from here on belong to PID 1's id, which is unprivileged on the host" },
	{ "new-keyring",           child_join_new_keyring,        "a new session keyring: the caller's keys cannot be reached" },
	{ "private-mounts",        cell_make_mounts_private,      "mounts made from here on stay in this namespace" },
	{ "mounts",                cell_apply_mount_plan,         "each by descriptor, below the new root" },
	{ "enter-root",            cell_enter_root,               "pivot_root(), then the old root is detached" },
	{ "set-hostname",          cell_set_hostname,             "a name that tells nothing about the host" },
	{ "prepare",               cell_make_code_and_pipes,      "makes main.py and the program's pipes" },
	{ "ignore-orphans",        cell_ignore_orphans,           "the kernel reaps orphans, so PID 1 does not have to" },
	{ "enter-user-namespace",  cell_enter_user_namespace,     "after the last step that needs rights over the cell" },
	{ "take-ids",              child_set_init_ids,            "root of a namespace with two ids, unprivileged on the host" },
	{ "hand-over-descriptors", cell_place_init_descriptors,   "two descriptors for brig-init; all others are closed" },
	{ "bounding-set",          child_empty_bounding_set,      "no exec can gain a capability" },
	{ "securebits",            child_lock_securebits,         "locked: id 0 gives no capability" },
	{ "become-init",           cell_exec_init,                "executes brig-init, which has none of this memory" },
	{ NULL, NULL, NULL },
};

/* A zygote's mounts are those of a cell without /proc: it has no pid namespace of its own. */
const struct child_step child_zygote_steps[] = {
	{ "rlimits",         child_set_fixed_rlimits,  "inherited by its forks" },
	{ "private-mounts",  cell_make_mounts_private, "mounts made from here on stay in this namespace" },
	{ "mounts",          cell_apply_mount_plan,    "each by descriptor, below the new root" },
	{ "write-code",      zygote_write_code,        "what it executes instead of a program's main.py" },
	{ "write-extension", zygote_write_extension,   "what that loads" },
	{ "enter-root",      cell_enter_root,          "it reads the rootfs, and nothing of the host" },
	{ "set-hostname",    cell_set_hostname,        "as a module that asks while it is imported would see it in a cell" },
	{ NULL, NULL, NULL },
};
/* clang-format on */
