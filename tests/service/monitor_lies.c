/*
 * monitor_lies.c - a server that has gone mad, for tests/service/test_monitor.py
 *
 *   monitor_lies                           the lies, a line each: NAME, and "ends" or "refused"
 *   monitor_lies NAME MONITOR STORE RUNTIME tells that one to a real monitor and prints what became of it:
 *       "started" when a program began, "refused REASON: WHY" on the run's own socket, "hung up" when that closed without
 *       a word, then "lives" when it answers STATS and runs something honest afterwards, or "ended STATUS"
 *
 * Lies go over a real socket with real descriptors; each row says how far the talk was before it.
 */
#define _GNU_SOURCE
#include "clock.h"
#include "fd.h"
#include "run_spec.h"
#include "mad_server.h"
#include "packet.h"
#include "profile_warm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 50000, LIE_FDS_MAX = 64 };
enum { SEALS = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW };

/* What goes out: by default honest, then changed by a row. */
struct lie {
	struct monitor_message message;
	size_t             len;
	int                fd[LIE_FDS_MAX];
	size_t             fds;
	bool               is_rule; /* as the reader sends it */
};

struct mad_server {
	const char *store, *runtime;
	uint32_t    profile; /* the number of the one that serves */
	int         monitor, rules, run; /* sockets: the server's, the reader's; run: ours of the run that was asked for last, or -1 */
	pid_t       pid;
};

/* --- descriptors --- */

static int filter_of(size_t n)
{
	static struct sock_filter code[2 * MONITOR_FILTER_MAX];

	for (size_t i = 0; i < n; i++)
		code[i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return memory(code, n * sizeof *code, SEALS);
}

static int a_pipe(void)
{
	int end[2];

	must(pipe2(end, O_CLOEXEC), "pipe");
	close(end[1]);
	return end[0];
}

static int opened(const char *path, int flags)
{
	return must(open(path, flags | O_CLOEXEC), path);
}

/* --- honest words --- */

static const char program[] = "print('an honest run')\n";
static const char exec_args[] = "/usr/bin/python3\0python3\0-I\0main.py\0LANG=C.UTF-8"; /* its last NUL included */

static struct lie begin(uint32_t kind)
{
	return (struct lie){ .message.kind = kind, .len = sizeof(struct monitor_message), .is_rule = kind < MONITOR_RUN };
}

static void put_fd(struct lie *l, int fd)
{
	l->fd[l->fds++] = fd;
}

static struct lie honest_setup(const struct mad_server *d)
{
	struct lie l = begin(MONITOR_SETUP);

	l.message.setup = setup_of(d->store, d->runtime);
	return l;
}

static struct lie honest_profile(const struct mad_server *d)
{
	struct lie l = begin(MONITOR_PROFILE);

	(void)d;
	l.message.profile = (struct monitor_profile){ .name = "basic", .rootfs = "basic", .workspace_exec = 1, .ready = 1 };
	l.message.profile.zygote_cells = l.message.profile.zygote_ms = 1;
	fields_set_presets(limits_fields, &l.message.profile.limits);
	fields_set_presets(ceilings_fields, &l.message.profile.ceilings);
	put_fd(&l, filter_of(1));
	return l;
}

static struct lie honest_run(struct mad_server *d)
{
	struct lie l = begin(MONITOR_RUN);
	int        pair[2];

	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), "socketpair");
	fd_closep(&d->run);
	d->run     = pair[0];
	l.message.run = (struct monitor_run){ .profile = d->profile,
					     .order   = { .head  = { .exec_args = { .fd = -1, .paths = 1, .argc = 3, .envc = 1, .len = sizeof exec_args },
								    .code_len  = sizeof program - 1,
								    .executes  = 1 },
							  .asked = clock_ms(CLOCK_MONOTONIC) } };
	fields_set_presets(limits_fields, &l.message.run.order.limits);
	put_fd(&l, pair[1]);
	put_fd(&l, memory(exec_args, sizeof exec_args, SEALS));
	put_fd(&l, memory(program, sizeof program - 1, SEALS));
	return l;
}

/* One directory more. */
static void show(struct lie *l, const char *name, int fd)
{
	struct monitor_run *r = &l->message.run;

	snprintf(r->shown[r->shown_len++], SHOWN_NAME_MAX, "%s", name);
	put_fd(l, fd);
}

static void exchange(struct lie *l, size_t i, int fd)
{
	close(l->fd[i]);
	l->fd[i] = fd;
}

/* --- the lies: each changes what is honest --- */

#define LIE(name) static void lie_##name(struct lie *l)
/* clang-format off */
LIE(nothing)             { (void)l; }
LIE(as_server)             { l->is_rule = false; }
LIE(as_reader)           { l->is_rule = true; }
LIE(kind_zero)           { l->message.kind = 0; }
LIE(kind_unknown)        { l->message.kind = 99; }
LIE(kind_huge)           { l->message.kind = UINT32_MAX; }
LIE(short)               { l->len--; }
LIE(only_a_kind)         { l->len = sizeof l->message.kind; }
LIE(one_byte)            { l->len = 1; }
LIE(long)                { l->len++; }
LIE(fd_more)             { put_fd(l, a_pipe()); }
LIE(fd_less)             { close(l->fd[--l->fds]); }
LIE(fd_none)             { while (l->fds) close(l->fd[--l->fds]); }
LIE(fd_many)             { while (l->fds < LIE_FDS_MAX) put_fd(l, a_pipe()); }
LIE(mode)                { l->message.setup.mode = 7; }
LIE(ids_of_root)         { l->message.setup.id_base = 0; }
LIE(ids_of_users)        { l->message.setup.id_base = 1000; }
LIE(ids_none)            { l->message.setup.id_count = 0; }
LIE(ids_around)          { l->message.setup.id_base = UINT32_MAX - 10; }
LIE(ids_too_many)        { l->message.setup.id_count = UINT32_MAX; }
LIE(store_relative)      { strcpy(l->message.setup.store[0], "store"); }
LIE(store_endless)       { memset(l->message.setup.store[0], '/', PATH_SIZE); }
LIE(store_other_endless) { memset(l->message.setup.store[1], '/', PATH_SIZE); }
LIE(runtime_empty)       { l->message.setup.runtime[0] = 0; }
LIE(runtime_endless)     { memset(l->message.setup.runtime, '/', PATH_SIZE); }
LIE(name_path)           { strcpy(l->message.profile.name, "../etc"); }
LIE(name_endless)        { memset(l->message.profile.name, 'a', MONITOR_NAME_MAX); }
LIE(rootfs_path)         { strcpy(l->message.profile.rootfs, "../../etc"); }
LIE(rootfs_empty)        { l->message.profile.rootfs[0] = 0; }
LIE(rootfs_endless)      { memset(l->message.profile.rootfs, 'a', MONITOR_NAME_MAX); }
LIE(flag)                { l->message.profile.workspace_exec = 2; }
LIE(require)             { l->message.profile.require_all = UINT32_MAX; }
LIE(ready)               { l->message.profile.ready = MONITOR_READY_MAX + 1; }
LIE(warm)                { l->message.profile.warm = WARM_READY + 1; }
LIE(zygote_for_nobody)   { l->message.profile.zygote_cells = 0; }
LIE(zygote_for_no_time)  { l->message.profile.zygote_ms = 0; }
LIE(preload_code)        { strcpy(l->message.profile.preload, "os\"; import socket #"); }
LIE(preload_endless)     { memset(l->message.profile.preload, 'a', MONITOR_PRELOAD_MAX); }
LIE(preset_above)        { l->message.profile.limits.pids = l->message.profile.ceilings.pids + 1; }
LIE(preset_zero)         { l->message.profile.limits.memory_bytes = 0; }
LIE(ceiling_beyond)      { l->message.profile.ceilings.memory_bytes = UINT64_MAX; }
LIE(filter_pipe)         { exchange(l, 0, a_pipe()); }
LIE(filter_directory)    { exchange(l, 0, opened("/usr", O_RDONLY | O_DIRECTORY)); }
LIE(filter_path)         { exchange(l, 0, opened("/etc/passwd", O_PATH)); }
LIE(filter_unsealed)     { exchange(l, 0, memory("12345678", 8, 0)); }
LIE(filter_odd)          { exchange(l, 0, memory("123456789", 9, SEALS)); }
LIE(filter_empty)        { exchange(l, 0, memory("", 0, SEALS)); }
LIE(filter_long)         { exchange(l, 0, filter_of(MONITOR_FILTER_MAX + 1)); }
LIE(profile_before)      { l->message.run.profile = 0; }
LIE(profile_lower)       { l->message.profile.ceilings.memory_bytes = l->message.profile.limits.memory_bytes; }
LIE(profile_next)        { l->message.run.profile = 1; }
LIE(profile_huge)        { l->message.run.profile = UINT32_MAX; }
LIE(profile_around)      { l->message.run.profile = 0x80000000; }
LIE(memory_most)         { l->message.run.order.limits.memory_bytes = 1 * GIB; }
LIE(memory_above)        { l->message.run.order.limits.memory_bytes = 1 * GIB + 1; }
LIE(wall_above)          { l->message.run.order.limits.wall_ms = 300001; }
LIE(pids_most)           { l->message.run.order.limits.pids = UINT64_MAX; }
LIE(pids_zero)           { l->message.run.order.limits.pids = 0; }
LIE(memory_zero)         { l->message.run.order.limits.memory_bytes = 0; }
LIE(code_long)           { l->message.run.order.head.code_len = RUN_SPEC_CODE_MAX + 1; }
LIE(code_longer)         { l->message.run.order.head.code_len++; }
LIE(code_shorter)        { l->message.run.order.head.code_len--; }
LIE(code_huge)           { l->message.run.order.head.code_len = UINT32_MAX; }
LIE(code_pipe)           { exchange(l, 2, a_pipe()); }
LIE(code_unsealed)       { exchange(l, 2, memory(program, sizeof program - 1, 0)); }
LIE(code_directory)      { exchange(l, 2, opened("/usr", O_RDONLY | O_DIRECTORY)); }
LIE(code_of_the_host)    { exchange(l, 2, opened("/etc/passwd", O_RDONLY)); }
LIE(words_none)          { l->message.run.order.head.exec_args.argc = 0; }
LIE(words_no_path)       { l->message.run.order.head.exec_args.paths = 0; }
LIE(words_many)          { l->message.run.order.head.exec_args.argc = EXEC_ARGS_ARGV_MAX + 1; }
LIE(words_huge)          { l->message.run.order.head.exec_args.argc = UINT32_MAX; }
LIE(words_paths_huge)    { l->message.run.order.head.exec_args.paths = UINT32_MAX; }
LIE(words_env_huge)      { l->message.run.order.head.exec_args.envc = UINT32_MAX; }
LIE(words_around)        { l->message.run.order.head.exec_args.paths = l->message.run.order.head.exec_args.argc = l->message.run.order.head.exec_args.envc = 0x55555556; }
LIE(words_empty)         { l->message.run.order.head.exec_args.len = 0; }
LIE(words_long)          { l->message.run.order.head.exec_args.len = EXEC_ARGS_BYTES_MAX + 1; }
LIE(words_longer)        { l->message.run.order.head.exec_args.len++; }
LIE(words_more)          { l->message.run.order.head.exec_args.argc++; }
LIE(words_fewer)         { l->message.run.order.head.exec_args.argc--; }
LIE(words_pipe)          { exchange(l, 1, a_pipe()); }
LIE(words_unsealed)      { exchange(l, 1, memory(exec_args, sizeof exec_args, 0)); }
LIE(words_of_the_host)   { exchange(l, 1, opened("/etc/passwd", O_RDONLY)); }
LIE(executes_flag)       { l->message.run.order.head.executes = 2; }
LIE(stdin_flag)          { l->message.run.order.head.stdin_pipe = 2; }
LIE(tools_flag)          { l->message.run.order.head.tools = 2; put_fd(l, a_pipe()); }
LIE(tools_lacking)       { l->message.run.order.head.tools = 1; }
LIE(tools_pipe)          { l->message.run.order.head.tools = 1; put_fd(l, a_pipe()); }
LIE(tools_of_the_host)   { l->message.run.order.head.tools = 1; put_fd(l, opened("/etc/shadow", O_RDONLY)); }
LIE(tools_directory)     { l->message.run.order.head.tools = 1; put_fd(l, opened("/", O_PATH)); }
LIE(tools_datagrams)     { l->message.run.order.head.tools = 1; put_fd(l, must(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), "socket")); }
LIE(tools_network)       { l->message.run.order.head.tools = 1; put_fd(l, must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")); }
LIE(result_flag)         { l->message.run.order.head.result_pipe = 2; }
LIE(result)              { l->message.run.order.head.result_pipe = 1; }
LIE(shown_many)          { l->message.run.shown_len = MOUNT_SHOWN_MAX + 1; }
LIE(shown_huge)          { l->message.run.shown_len = UINT32_MAX; }
LIE(shown_up)            { show(l, "..", opened("/usr", O_PATH)); }
LIE(shown_dot)           { show(l, ".", opened("/usr", O_PATH)); }
LIE(shown_deep)          { show(l, "a/../../b", opened("/usr", O_PATH)); }
LIE(shown_empty)         { show(l, "", opened("/usr", O_PATH)); }
LIE(shown_program)       { show(l, "main.py", opened("/usr", O_PATH)); }
LIE(shown_endless)       { show(l, "", opened("/usr", O_PATH)); memset(l->message.run.shown[0], 'a', SHOWN_NAME_MAX); }
LIE(shown_twice)         { show(l, "a", opened("/usr", O_PATH)); show(l, "a", opened("/usr", O_PATH)); }
LIE(shown_namespace)     { show(l, "a", opened("/proc/self/ns/net", O_RDONLY)); }
LIE(shown_pipe)          { show(l, "a", a_pipe()); }
LIE(shown_proc)          { show(l, "a", opened("/proc", O_PATH)); }
LIE(client_pipe)         { exchange(l, 0, a_pipe()); }
LIE(client_directory)    { exchange(l, 0, opened("/usr", O_PATH)); }
LIE(cell)                { l->message.run.cell = (struct monitor_cell_id){ .number = 0, .generation = 1 }; }
LIE(cell_huge)           { l->message.run.cell = (struct monitor_cell_id){ .number = UINT64_MAX, .generation = UINT64_MAX }; }
LIE(asked_nan)           { l->message.run.order.asked = NAN; }
LIE(asked_never)         { l->message.run.order.asked = -1e308; }

enum stage { FIRST, AFTER_SETUP, AFTER_PROFILE, SEALED, SERVED, REPLACED };
enum fate { ENDS, REFUSED, HARMLESS }; /* harmless: a run may start, for nothing is wrong that matters */

static const struct row {
	const char *name;
	enum stage  stage;
	uint32_t    kind;
	void      (*tell)(struct lie *l);
	enum fate   fate;
} rows[] = {
	{ "setup: no such mode",                 FIRST, MONITOR_SETUP, lie_mode, ENDS },
	{ "setup: the ids of root",              FIRST, MONITOR_SETUP, lie_ids_of_root, ENDS },
	{ "setup: the ids of users",             FIRST, MONITOR_SETUP, lie_ids_of_users, ENDS },
	{ "setup: no ids",                       FIRST, MONITOR_SETUP, lie_ids_none, ENDS },
	{ "setup: ids that wrap around",         FIRST, MONITOR_SETUP, lie_ids_around, ENDS },
	{ "setup: more ids than there are",      FIRST, MONITOR_SETUP, lie_ids_too_many, ENDS },
	{ "setup: a relative store",             FIRST, MONITOR_SETUP, lie_store_relative, ENDS },
	{ "setup: a store without an end",       FIRST, MONITOR_SETUP, lie_store_endless, ENDS },
	{ "setup: a second one without an end",  FIRST, MONITOR_SETUP, lie_store_other_endless, ENDS },
	{ "setup: no runtime directory",         FIRST, MONITOR_SETUP, lie_runtime_empty, ENDS },
	{ "setup: a runtime without an end",     FIRST, MONITOR_SETUP, lie_runtime_endless, ENDS },
	{ "setup: too short",                    FIRST, MONITOR_SETUP, lie_short, ENDS },
	{ "setup: too long",                     FIRST, MONITOR_SETUP, lie_long, ENDS },
	{ "setup: only a kind",                  FIRST, MONITOR_SETUP, lie_only_a_kind, ENDS },
	{ "setup: one byte",                     FIRST, MONITOR_SETUP, lie_one_byte, ENDS },
	{ "setup: with a descriptor",            FIRST, MONITOR_SETUP, lie_fd_more, ENDS },
	{ "setup: with many descriptors",        FIRST, MONITOR_SETUP, lie_fd_many, ENDS },
	{ "first: kind 0",                       FIRST, MONITOR_SETUP, lie_kind_zero, ENDS },
	{ "first: an unknown kind",              FIRST, MONITOR_SETUP, lie_kind_unknown, ENDS },
	{ "first: a profile",                    FIRST, MONITOR_PROFILE, lie_nothing, ENDS },
	{ "first: the seal",                     FIRST, MONITOR_SEAL, lie_nothing, ENDS },
	{ "first: a run",                        FIRST, MONITOR_RUN, lie_nothing, ENDS },
	{ "first: a question",                   FIRST, MONITOR_STATS, lie_nothing, ENDS },
	{ "after setup: setup",                  AFTER_SETUP, MONITOR_SETUP, lie_nothing, ENDS },
	{ "after setup: a run",                  AFTER_SETUP, MONITOR_RUN, lie_nothing, ENDS },
	{ "after setup: a question",             AFTER_SETUP, MONITOR_STATS, lie_nothing, ENDS },
	{ "profile: a path as name",             AFTER_SETUP, MONITOR_PROFILE, lie_name_path, ENDS },
	{ "profile: a name without an end",      AFTER_SETUP, MONITOR_PROFILE, lie_name_endless, ENDS },
	{ "profile: a path as rootfs",           AFTER_SETUP, MONITOR_PROFILE, lie_rootfs_path, ENDS },
	{ "profile: no rootfs",                  AFTER_SETUP, MONITOR_PROFILE, lie_rootfs_empty, ENDS },
	{ "profile: a rootfs without an end",    AFTER_SETUP, MONITOR_PROFILE, lie_rootfs_endless, ENDS },
	{ "profile: a flag of 2",                AFTER_SETUP, MONITOR_PROFILE, lie_flag, ENDS },
	{ "profile: a flag of all bits",         AFTER_SETUP, MONITOR_PROFILE, lie_require, ENDS },
	{ "profile: too many ready cells",       AFTER_SETUP, MONITOR_PROFILE, lie_ready, ENDS },
	{ "profile: warm more than once",        AFTER_SETUP, MONITOR_PROFILE, lie_warm, ENDS },
	{ "profile: a zygote for nobody",        AFTER_SETUP, MONITOR_PROFILE, lie_zygote_for_nobody, ENDS },
	{ "profile: a zygote for no time",       AFTER_SETUP, MONITOR_PROFILE, lie_zygote_for_no_time, ENDS },
	{ "profile: a program as a module",      AFTER_SETUP, MONITOR_PROFILE, lie_preload_code, ENDS },
	{ "profile: modules without an end",     AFTER_SETUP, MONITOR_PROFILE, lie_preload_endless, ENDS },
	{ "profile: limits above its ceilings",  AFTER_SETUP, MONITOR_PROFILE, lie_preset_above, ENDS },
	{ "profile: a limit of zero",            AFTER_SETUP, MONITOR_PROFILE, lie_preset_zero, ENDS },
	{ "profile: a ceiling beyond all",       AFTER_SETUP, MONITOR_PROFILE, lie_ceiling_beyond, ENDS },
	{ "profile: no filter",                  AFTER_SETUP, MONITOR_PROFILE, lie_fd_none, ENDS },
	{ "profile: two descriptors",            AFTER_SETUP, MONITOR_PROFILE, lie_fd_more, ENDS },
	{ "profile: a pipe as filter",           AFTER_SETUP, MONITOR_PROFILE, lie_filter_pipe, ENDS },
	{ "profile: a directory as filter",      AFTER_SETUP, MONITOR_PROFILE, lie_filter_directory, ENDS },
	{ "profile: a path as filter",           AFTER_SETUP, MONITOR_PROFILE, lie_filter_path, ENDS },
	{ "profile: an unsealed filter",         AFTER_SETUP, MONITOR_PROFILE, lie_filter_unsealed, ENDS },
	{ "profile: half an instruction",        AFTER_SETUP, MONITOR_PROFILE, lie_filter_odd, ENDS },
	{ "profile: an empty filter",            AFTER_SETUP, MONITOR_PROFILE, lie_filter_empty, ENDS },
	{ "profile: a filter too long",          AFTER_SETUP, MONITOR_PROFILE, lie_filter_long, ENDS },
	{ "before the seal: a run",              AFTER_PROFILE, MONITOR_RUN, lie_nothing, ENDS },
	{ "before the seal: a question",         AFTER_PROFILE, MONITOR_STATS, lie_nothing, ENDS },
	{ "the seal: with a descriptor",         AFTER_PROFILE, MONITOR_SEAL, lie_fd_more, ENDS },
	{ "sealed: one more profile",            SEALED, MONITOR_PROFILE, lie_nothing, ENDS },
	{ "sealed: setup",                       SEALED, MONITOR_SETUP, lie_nothing, ENDS },
	{ "sealed: sealed again",                SEALED, MONITOR_SEAL, lie_nothing, ENDS },
	{ "served: an unknown kind",             SERVED, MONITOR_STATS, lie_kind_unknown, ENDS },
	{ "served: a huge kind",                 SERVED, MONITOR_STATS, lie_kind_huge, ENDS },
	{ "served: a question too short",        SERVED, MONITOR_STATS, lie_short, ENDS },
	{ "served: a question with a file",      SERVED, MONITOR_STATS, lie_fd_more, ENDS },
	{ "served: served again",                SERVED, MONITOR_SERVE, lie_nothing, ENDS },
	{ "served: setup",                       SERVED, MONITOR_SETUP, lie_nothing, ENDS },
	{ "served: a ceiling beyond all",        SERVED, MONITOR_PROFILE, lie_ceiling_beyond, ENDS },
	{ "served: no filter",                   SERVED, MONITOR_PROFILE, lie_fd_none, ENDS },
	{ "served: dropped",                     SERVED, MONITOR_DROP, lie_nothing, HARMLESS },
	{ "before the seal: served",             AFTER_PROFILE, MONITOR_SERVE, lie_nothing, ENDS },
	{ "the server: setup",                   FIRST, MONITOR_SETUP, lie_as_server, ENDS },
	{ "the server: a profile",               AFTER_SETUP, MONITOR_PROFILE, lie_as_server, ENDS },
	{ "the server: the seal",                AFTER_PROFILE, MONITOR_SEAL, lie_as_server, ENDS },
	{ "the server: they serve",              SEALED, MONITOR_SERVE, lie_as_server, ENDS },
	{ "the server: they are dropped",        SEALED, MONITOR_DROP, lie_as_server, ENDS },
	{ "the server: setup, later",            SERVED, MONITOR_SETUP, lie_as_server, ENDS },
	{ "the server: a profile, later",        SERVED, MONITOR_PROFILE, lie_as_server, ENDS },
	{ "the server: the seal, later",         SERVED, MONITOR_SEAL, lie_as_server, ENDS },
	{ "the server: they serve, later",       SERVED, MONITOR_SERVE, lie_as_server, ENDS },
	{ "the server: they are dropped, later", SERVED, MONITOR_DROP, lie_as_server, ENDS },
	{ "the reader: a run",                   SERVED, MONITOR_RUN, lie_as_reader, ENDS },
	{ "the reader: a question",              SERVED, MONITOR_STATS, lie_as_reader, ENDS },
	{ "a lease: given to the monitor",       SERVED, MONITOR_LEASE, lie_nothing, ENDS },
	{ "a lease: given with a descriptor",    SERVED, MONITOR_LEASE, lie_fd_more, ENDS },
	{ "a lease: recalled by the server",     SERVED, MONITOR_RECALL, lie_nothing, ENDS },
	{ "run: too short",                      SERVED, MONITOR_RUN, lie_short, ENDS },
	{ "run: too long",                       SERVED, MONITOR_RUN, lie_long, ENDS },
	{ "run: a descriptor less",              SERVED, MONITOR_RUN, lie_fd_less, ENDS },
	{ "run: a descriptor more",              SERVED, MONITOR_RUN, lie_fd_more, ENDS },
	{ "run: no descriptor",                  SERVED, MONITOR_RUN, lie_fd_none, ENDS },
	{ "run: many descriptors",               SERVED, MONITOR_RUN, lie_fd_many, ENDS },
	{ "run: more directories than fit",      SERVED, MONITOR_RUN, lie_shown_many, ENDS },
	{ "run: four thousand million of them",  SERVED, MONITOR_RUN, lie_shown_huge, ENDS },
	{ "run: the next profile",               SERVED, MONITOR_RUN, lie_profile_next, REFUSED },
	{ "run: a profile of before",            REPLACED, MONITOR_RUN, lie_profile_before, REFUSED },
	{ "run: above the ceiling of now",       REPLACED, MONITOR_RUN, lie_memory_most, REFUSED },
	{ "run: the truth of now",               REPLACED, MONITOR_RUN, lie_nothing, HARMLESS },
	{ "run: profile 4294967295",             SERVED, MONITOR_RUN, lie_profile_huge, REFUSED },
	{ "run: profile 2147483648",             SERVED, MONITOR_RUN, lie_profile_around, REFUSED },
	{ "run: memory above the ceiling",       SERVED, MONITOR_RUN, lie_memory_above, REFUSED },
	{ "run: wall time above the ceiling",    SERVED, MONITOR_RUN, lie_wall_above, REFUSED },
	{ "run: all processes there can be",     SERVED, MONITOR_RUN, lie_pids_most, REFUSED },
	{ "run: no processes",                   SERVED, MONITOR_RUN, lie_pids_zero, REFUSED },
	{ "run: no memory",                      SERVED, MONITOR_RUN, lie_memory_zero, REFUSED },
	{ "run: a program too long",             SERVED, MONITOR_RUN, lie_code_long, REFUSED },
	{ "run: a program longer than it is",    SERVED, MONITOR_RUN, lie_code_longer, REFUSED },
	{ "run: a program of 4 GiB",             SERVED, MONITOR_RUN, lie_code_huge, REFUSED },
	{ "run: a program shorter than it is",   SERVED, MONITOR_RUN, lie_code_shorter, HARMLESS },
	{ "run: a pipe as program",              SERVED, MONITOR_RUN, lie_code_pipe, REFUSED },
	{ "run: an unsealed program",            SERVED, MONITOR_RUN, lie_code_unsealed, HARMLESS },
	{ "run: a directory as program",         SERVED, MONITOR_RUN, lie_code_directory, REFUSED },
	{ "run: a file of the host as program",  SERVED, MONITOR_RUN, lie_code_of_the_host, REFUSED },
	{ "run: no words",                       SERVED, MONITOR_RUN, lie_words_none, REFUSED },
	{ "run: no path",                        SERVED, MONITOR_RUN, lie_words_no_path, REFUSED },
	{ "run: too many words",                 SERVED, MONITOR_RUN, lie_words_many, REFUSED },
	{ "run: 4294967295 words",               SERVED, MONITOR_RUN, lie_words_huge, REFUSED },
	{ "run: 4294967295 paths",               SERVED, MONITOR_RUN, lie_words_paths_huge, REFUSED },
	{ "run: 4294967295 variables",           SERVED, MONITOR_RUN, lie_words_env_huge, REFUSED },
	{ "run: numbers that add up to 2",       SERVED, MONITOR_RUN, lie_words_around, REFUSED },
	{ "run: words of no length",             SERVED, MONITOR_RUN, lie_words_empty, REFUSED },
	{ "run: words too long",                 SERVED, MONITOR_RUN, lie_words_long, REFUSED },
	{ "run: words longer than they are",     SERVED, MONITOR_RUN, lie_words_longer, REFUSED },
	{ "run: more words than there are",      SERVED, MONITOR_RUN, lie_words_more, REFUSED },
	{ "run: fewer words than there are",     SERVED, MONITOR_RUN, lie_words_fewer, REFUSED },
	{ "run: a pipe as words",                SERVED, MONITOR_RUN, lie_words_pipe, REFUSED },
	{ "run: unsealed words",                 SERVED, MONITOR_RUN, lie_words_unsealed, HARMLESS },
	{ "run: a file of the host as words",    SERVED, MONITOR_RUN, lie_words_of_the_host, REFUSED },
	{ "run: executes twice",                   SERVED, MONITOR_RUN, lie_executes_flag, REFUSED },
	{ "run: a flag of 2",                   SERVED, MONITOR_RUN, lie_stdin_flag, REFUSED },
	{ "run: tools of 2",                    SERVED, MONITOR_RUN, lie_tools_flag, REFUSED },
	{ "run: tools without a socket",        SERVED, MONITOR_RUN, lie_tools_lacking, ENDS },
	{ "run: a pipe to tools",               SERVED, MONITOR_RUN, lie_tools_pipe, REFUSED },
	{ "run: a file of the host as tools",   SERVED, MONITOR_RUN, lie_tools_of_the_host, REFUSED },
	{ "run: a directory as tools",          SERVED, MONITOR_RUN, lie_tools_directory, REFUSED },
	{ "run: datagrams to tools",            SERVED, MONITOR_RUN, lie_tools_datagrams, REFUSED },
	{ "run: a network to tools",            SERVED, MONITOR_RUN, lie_tools_network, REFUSED },
	{ "run: a report of 2",                 SERVED, MONITOR_RUN, lie_result_flag, REFUSED },
	{ "run: a report that is not read",     SERVED, MONITOR_RUN, lie_result, HARMLESS },
	{ "run: a directory called ..",         SERVED, MONITOR_RUN, lie_shown_up, REFUSED },
	{ "run: a directory called .",          SERVED, MONITOR_RUN, lie_shown_dot, REFUSED },
	{ "run: a directory with a path",       SERVED, MONITOR_RUN, lie_shown_deep, REFUSED },
	{ "run: a directory without a name",    SERVED, MONITOR_RUN, lie_shown_empty, REFUSED },
	{ "run: a directory over the program",  SERVED, MONITOR_RUN, lie_shown_program, REFUSED },
	{ "run: a name without an end",         SERVED, MONITOR_RUN, lie_shown_endless, REFUSED },
	{ "run: a name twice",                  SERVED, MONITOR_RUN, lie_shown_twice, REFUSED },
	{ "run: a namespace as file",           SERVED, MONITOR_RUN, lie_shown_namespace, REFUSED },
	{ "run: a pipe as directory",           SERVED, MONITOR_RUN, lie_shown_pipe, REFUSED },
	{ "run: /proc as directory",            SERVED, MONITOR_RUN, lie_shown_proc, REFUSED },
	{ "run: a pipe as client",              SERVED, MONITOR_RUN, lie_client_pipe, REFUSED },
	{ "run: a directory as client",         SERVED, MONITOR_RUN, lie_client_directory, REFUSED },
	{ "run: with a lease of no cell",       SERVED, MONITOR_RUN, lie_cell_huge, HARMLESS },
	{ "run: with a lease never given",      SERVED, MONITOR_RUN, lie_cell, HARMLESS },
	{ "run: asked at no time",              SERVED, MONITOR_RUN, lie_asked_nan, HARMLESS },
	{ "run: asked long ago",                SERVED, MONITOR_RUN, lie_asked_never, HARMLESS },
	{ "run: the truth",                     SERVED, MONITOR_RUN, lie_nothing, HARMLESS },
};
static const char *const fates[] = { [ENDS] = "ends", [REFUSED] = "refused", [HARMLESS] = "harmless" };
/* clang-format on */

/* --- telling --- */

static void send_lie(const struct mad_server *d, struct lie *l)
{
	static char    bytes[sizeof(struct monitor_message) + 1];
	char           control[CMSG_SPACE(LIE_FDS_MAX * sizeof(int))] __attribute__((aligned(sizeof(size_t)))) = { 0 };
	struct iovec   io  = { bytes, l->len };
	struct msghdr  msg = { .msg_iov = &io, .msg_iovlen = 1 };

	memcpy(bytes, &l->message, sizeof l->message);
	if (l->fds) {
		msg.msg_control    = control;
		msg.msg_controllen = CMSG_SPACE(l->fds * sizeof(int));
		*CMSG_FIRSTHDR(&msg) = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(l->fds * sizeof(int)) };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), l->fd, l->fds * sizeof(int));
	}
	if (sendmsg(l->is_rule ? d->rules : d->monitor, &msg, MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET)
		give_up("sendmsg");
	lie_fd_none(l);
}

static struct lie honest(struct mad_server *d, uint32_t kind)
{
	switch (kind) {
	case MONITOR_SETUP:
		return honest_setup(d);
	case MONITOR_PROFILE:
		return honest_profile(d);
	case MONITOR_RUN:
		return honest_run(d);
	}
	return begin(kind);
}

/* Whether the reader sent it. */
static bool tell(struct mad_server *d, uint32_t kind, void (*change)(struct lie *l))
{
	struct lie l = honest(d, kind);

	change(&l);
	send_lie(d, &l);
	return l.is_rule;
}

static bool wait_for(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, PATIENCE_MS) > 0;
}

/* Whether it answered well. */
static bool has_answered(const struct mad_server *d, uint32_t kind)
{
	struct monitor_answer a;
	size_t                n;
	int                   sock = kind == MONITOR_SEAL ? d->rules : d->monitor;

	if (!wait_for(sock) || packet_receive(sock, &a, sizeof a, NULL, 0, &n) != sizeof a || a.kind != kind)
		return false;
	if (a.err.kind != ERR_NONE)
		printf("answered: %s\n", a.err.text);
	return a.err.kind == ERR_NONE;
}

static void seal(struct mad_server *d)
{
	tell(d, MONITOR_SEAL, lie_nothing);
	if (!has_answered(d, MONITOR_SEAL)) {
		puts("not sealed");
		exit(EXIT_SUCCESS);
	}
}

/* Replaces the profile by another one; the monitor reads this before later messages of the server. */
static void replace(struct mad_server *d)
{
	tell(d, MONITOR_PROFILE, lie_profile_lower);
	seal(d);
	tell(d, MONITOR_SERVE, lie_nothing);
	seal(d);
	tell(d, MONITOR_DROP, lie_nothing);
	d->profile = 1;
}

static void come_to(struct mad_server *d, enum stage stage)
{
	if (stage >= AFTER_SETUP)
		tell(d, MONITOR_SETUP, lie_nothing);
	if (stage >= AFTER_PROFILE)
		tell(d, MONITOR_PROFILE, lie_nothing);
	if (stage < SEALED)
		return;
	seal(d);
	if (stage >= SERVED)
		tell(d, MONITOR_SERVE, lie_nothing);
	if (stage >= REPLACED)
		replace(d);
}

/* --- hearing --- */

/* What the run's own socket says, to its end; whether a program began. told: where to. */
static bool hear_run(struct mad_server *d, FILE *told)
{
	struct launch_message w;
	int                fd[PACKET_FDS_MAX];
	bool               started = false;
	size_t             n;

	for (;;) {
		if (!wait_for(d->run)) {
			fputs("silent\n", told);
			break;
		}
		if (packet_receive(d->run, &w, sizeof w, fd, ARRAY_LEN(fd), &n) <= 0) {
			fputs("hung up\n", told);
			break;
		}
		while (n)
			close(fd[--n]);
		started |= w.kind == LAUNCH_STARTED;
		if (w.kind == LAUNCH_STARTED)
			fputs("started\n", told);
		if (w.kind != LAUNCH_ENDED)
			continue;
		fprintf(told, "%s %s: %s\n", started ? "ran" : "refused", exit_reason_name(w.end.reason), w.end.why.text);
		break;
	}
	fd_closep(&d->run);
	return started;
}

static void tell_status(int status)
{
	if (WIFEXITED(status))
		printf("ended %d\n", WEXITSTATUS(status));
	else
		printf("killed %d\n", WTERMSIG(status));
}

/* It answers, and an honest run starts; or it has ended. */
static void hear_monitor(struct mad_server *d)
{
	FILE *quiet = fopen("/dev/null", "we");
	int   status;

	tell(d, MONITOR_STATS, lie_nothing);
	if (quiet && has_answered(d, MONITOR_STATS)) {
		tell(d, MONITOR_RUN, lie_nothing);
		puts(hear_run(d, quiet) ? "lives" : "lives, and runs nothing any more");
	}
	if (quiet)
		fclose(quiet);
	fd_closep(&d->monitor);
	must(waitpid(d->pid, &status, 0), "waitpid");
	tell_status(status);
}

static const struct row *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	errno = ENOENT;
	give_up(name);
}

int main(int argc, char **argv)
{
	struct mad_server  d = { .run = -1 };
	const struct row  *row;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; argc == 1 && i < ARRAY_LEN(rows); i++)
		printf("%s\t%s\n", fates[rows[i].fate], rows[i].name);
	if (argc != 5)
		return argc == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
	row       = find(argv[1]);
	d.store   = argv[3];
	d.runtime = argv[4];
	d.pid     = start_monitor(argv[2], &d.monitor, &d.rules);
	come_to(&d, row->stage);
	if (tell(&d, row->kind, row->tell) && row->fate == ENDS && !wait_for(d.rules)) /* the monitor might read the server's next message first */
		puts("lives");
	if (row->kind == MONITOR_RUN)
		hear_run(&d, stdout);
	hear_monitor(&d);
	return EXIT_SUCCESS;
}
