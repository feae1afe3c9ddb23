/* child_enter.c - the steps that lead a process into its cell: PID 1 takes some, and a fork all before the program's */
#define _GNU_SOURCE
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int child_join_cgroups(struct child_ctx *c)
{
	for (int i = 0; i < c->join_len; i++)
		if (write(c->join_fd[i], "0", 1) != 1)
			return -errno;
	c->cpu_before_ns = c->join_len ? child_cpu_ns(0) : 0; /* v2 counts a process cloned into its group from its start */
	return 0;
}

/* Also makes the process non-dumpable: it cannot be traced. The kernel does that itself only when an id changes. */
int child_set_init_ids(struct child_ctx *c)
{
	if (setresgid(c->init_id, c->init_id, c->init_id) < 0 || setresuid(c->init_id, c->init_id, c->init_id) < 0)
		return -errno;
	return child_sys(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
}

int child_join_new_keyring(struct child_ctx *c)
{
	long r = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);

	(void)c;
	return r < 0 && errno != ENOSYS ? -errno : 0; /* a kernel without keys has none to leak */
}

/* The groups count from here on. Before that: the fork's own CPU time and PID 1's, which came with the request. */
static int enter_cgroups(struct child_ctx *c)
{
	int64_t before = c->cpu_before_ns;
	int     r      = child_join_cgroups(c);

	c->cpu_before_ns += before;
	return r;
}

/*
 * The fork was made in the cell's pid namespace. The other namespaces are entered in one call, which the kernel
 * checks with the rights from before it: after the user namespace alone the fork would have none over the rest.
 */
static int enter_cell_namespaces(struct child_ctx *c)
{
	return child_sys(setns(c->fork.cell_pidfd, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP));
}

/* PID 1 makes main.py before it is known what will run. At this step the fork has the id that owns the file. */
static int remove_main_py(struct child_ctx *c)
{
	return c->fork.has_code ? 0 : child_sys(unlink("/workspace/main.py"));
}

/* --- what /proc shows as our arguments and environment --- */

/* Fields of /proc/self/stat, numbered as in proc(5). */
enum { STAT_STATE = 3, STAT_START_CODE = 26, STAT_END_CODE, STAT_START_STACK };
enum { STAT_START_DATA = 45, STAT_END_DATA, STAT_START_BRK, STAT_FIELDS };

/* The process name may contain blanks and parentheses; the fields after the last parenthesis contain none. */
static bool parse_proc_stat(const char *text, uint64_t field[STAT_FIELDS])
{
	const char *at = strrchr(text, ')');

	for (int i = STAT_STATE; at && i < STAT_FIELDS; i++) {
		at = strchr(at + 1, ' ');
		field[i] = 0;
		for (const char *digit = at ? at + 1 : ""; *digit >= '0' && *digit <= '9'; digit++)
			field[i] = field[i] * 10 + (uint64_t)(*digit - '0');
	}
	return at;
}

static bool read_own_proc_stat(uint64_t field[STAT_FIELDS])
{
	char    text[1024];
	int     fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t n  = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	return parse_proc_stat(text, field);
}

static uint64_t pointer_to_u64(const void *at)
{
	return (uint64_t)(uintptr_t)at;
}

/* A kernel without CONFIG_CHECKPOINT_RESTORE refuses this. Nothing depends on it. */
static void set_proc_arg_addresses(const char *argv, const char *envp, const char *end)
{
	uint64_t field[STAT_FIELDS];

	if (!read_own_proc_stat(field))
		return;
	struct prctl_mm_map map = {
		.start_code = field[STAT_START_CODE], .end_code = field[STAT_END_CODE], .start_stack = field[STAT_START_STACK],
		.start_data = field[STAT_START_DATA], .end_data = field[STAT_END_DATA], .start_brk = field[STAT_START_BRK],
		.brk = pointer_to_u64(sbrk(0)), .arg_start = pointer_to_u64(argv), .arg_end = pointer_to_u64(envp), .env_start = pointer_to_u64(envp), .env_end = pointer_to_u64(end),
		.exe_fd = (uint32_t)-1,
	};
	prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0);
}

/* Filled when the spec comes. Their addresses are set now, before the filter forbids that, and they are touched. */
static int map_proc_arg_pages(struct child_ctx *c)
{
	char *at = mmap(NULL, 2 * CHILD_SHOWN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return -errno;
	memset(at, 0, 2 * CHILD_SHOWN_BYTES);
	set_proc_arg_addresses(at, at + CHILD_SHOWN_BYTES, at + 2 * CHILD_SHOWN_BYTES);
	c->fork.shown = at;
	return 0;
}

/* Sets what ps and /proc show. The texts are contiguous: paths, working directory, arguments, environment. */
int child_set_proc_args(struct child_ctx *c)
{
	const char *end = c->fork.lists->path[0] + c->fork.spec.exec_args.len;

	if (!c->fork.stays) /* the exec sets it */
		return 0;
	if (c->fork.is_ahead)
		return map_proc_arg_pages(c);
	set_proc_arg_addresses(c->fork.lists->argv[0], c->fork.spec.exec_args.envc ? c->fork.lists->envp[0] : end, end);
	return 0;
}

/* clang-format off */
/* Read top to bottom: the order is the security argument. */
const struct child_step child_enter_steps[] = {
	{ "join-groups",      enter_cgroups,          "before it allocates memory, and while it may write to the group's file" },
	{ "enter-namespaces", enter_cell_namespaces,  "all namespaces of the cell, in one call" },
	{ "take-ids",         child_set_init_ids,     "as PID 1's: what is allocated from here on is not counted for the fork server's id" },
	{ "remove-code",      remove_main_py,         "for a command, which has no main.py" },
	{ "new-keyring",      child_join_new_keyring, "a new session keyring: the fork server's keys cannot be reached" },
	{ NULL, NULL, NULL },
};
/* clang-format on */
