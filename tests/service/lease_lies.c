/*
 * lease_lies.c - a server that has gone mad and has a lease, for tests/service/test_leases.py
 *
 *   lease_lies                            the lies, a line each
 *   lease_lies NAME MONITOR STORE RUNTIME demand|ready
 *       gets leases from a real monitor, tells that lie to a supervisor or to the fork
 *       that waits, and prints what came of it: "output N" (bytes of the program), "ended REASON: WHY" or "hung up";
 *       then "lives" when an honest run by another lease does what it should
 */
#define _GNU_SOURCE
#include "clock.h"
#include "fd.h"
#include "run_spec.h"
#include "mad_server.h"
#include "run_spec_file.h"
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

enum { PATIENCE_MS = 50000, WALL_MS = 1000 };

static const char program[] = "import time\nprint('ran', flush=True)\ntime.sleep(1000)\n",
	short_program[] = "print('ran')\n";
static const char exec_args[] = "/usr/bin/python3\0python3\0-I\0main.py\0LANG=C.UTF-8"; /* its last NUL included */

struct mad_server {
	int           monitor, rules; /* the server's socket, and the reader's */
	pid_t         pid;
	struct limits limits;
};

struct lease {
	int fd[LEASE_FDS];
};

/* --- to the monitor, as the reader --- */

static void tell(const struct mad_server *d, const struct monitor_message *message, const int *fds, size_t n)
{
	must(-packet_send(d->rules, message, sizeof *message, fds, n) > 0 ? -1 : 0, "the monitor");
}

static void begin(struct mad_server *d, const char *store, const char *runtime, uint32_t warm)
{
	static struct monitor_message message;
	struct sock_filter        allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	int                       filter = memory(&allow, sizeof allow, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);

	message = (struct monitor_message){ .kind = MONITOR_SETUP, .setup = setup_of(store, runtime) };
	tell(d, &message, NULL, 0);
	d->limits = (struct limits){ 0 };
	fields_set_presets(limits_fields, &d->limits);
	d->limits.wall_ms = WALL_MS;
	message           = (struct monitor_message){ .kind = MONITOR_PROFILE };
	message.profile   = (struct monitor_profile){ .name           = "basic",
						     .rootfs         = "basic",
						     .workspace_exec = 1,
						     .ready          = 2,
						     .warm           = warm,
						     .zygote_cells   = 1000,
						     .zygote_ms      = 1000000,
						     .limits         = d->limits,
						     .ceilings       = d->limits };
	tell(d, &message, &filter, 1);
	close(filter);
	message = (struct monitor_message){ .kind = MONITOR_SEAL };
	tell(d, &message, NULL, 0);
	message = (struct monitor_message){ .kind = MONITOR_SERVE };
	tell(d, &message, NULL, 0);
}

/* Answers are of no interest. */
static struct lease await_lease(const struct mad_server *d)
{
	union {
		struct monitor_answer answer;
		struct monitor_lease lease;
	} says;
	struct pollfd p = { .fd = d->monitor, .events = POLLIN };
	struct lease t;
	size_t        n;

	while (poll(&p, 1, PATIENCE_MS) > 0) {
		if (packet_receive(d->monitor, &says, sizeof says, t.fd, LEASE_FDS, &n) <= 0)
			break;
		if (says.lease.kind == MONITOR_LEASE && n == LEASE_FDS)
			return t;
	}
	errno = ETIME;
	give_up("no lease");
}

/* --- to the supervisor and to the fork --- */

static struct run_spec order_of(const struct mad_server *d, const char *code)
{
	struct run_spec o;

	memset(&o, 0, sizeof o);
	o.limits   = d->limits;
	o.head.exec_args = (struct exec_args){ .fd = -1, .paths = 1, .argc = 3, .envc = 1, .len = sizeof exec_args };
	o.head.code_len  = (uint32_t)strlen(code);
	o.asked    = clock_ms(CLOCK_MONOTONIC);
	return o;
}

static void send_order(const struct lease *t, const struct run_spec *o)
{
	(void)packet_send(t->fd[LEASE_SUPERVISOR], o, sizeof *o, NULL, 0);
}

static void send_order_file(const struct lease *t, const struct run_spec *o, const char *code)
{
	struct run_spec_head head = { .exec_args = o->head.exec_args, .code_len = o->head.code_len };
	struct err           e;

	(void)!run_spec_file_write(t->fd[LEASE_ORDER_FILE], &head, exec_args, code, &e);
	(void)!run_spec_send_head(t->fd[LEASE_ORDERS], &head, -1);
}

/* Until the program's last byte. */
static size_t read_output(const struct lease *t)
{
	char   text[4096];
	size_t all = 0;

	for (ssize_t n; (n = read(t->fd[LEASE_STDOUT], text, sizeof text)) > 0;)
		all += (size_t)n;
	return all;
}

static void hear_end(const struct lease *t)
{
	struct launch_message w;
	size_t             n;

	for (;;) {
		if (packet_receive(t->fd[LEASE_SUPERVISOR], &w, sizeof w, NULL, 0, &n) != sizeof w) {
			puts("hung up");
			return;
		}
		if (w.kind == LAUNCH_ENDED) {
			printf("ended %s: %s\n", exit_reason_name(w.end.reason), w.end.why.text);
			return;
		}
	}
}

static void judge(const struct lease *t)
{
	printf("output %zu\n", read_output(t));
	hear_end(t);
}

static void run_honestly(const struct mad_server *d)
{
	struct lease    t = await_lease(d);
	struct run_spec o = order_of(d, short_program);

	send_order(&t, &o);
	send_order_file(&t, &o, short_program);
	if (read_output(&t) == 4)
		puts("lives");
}

/* --- the lies --- */

/* clang-format off */
#define MORE(name, change) static void more_##name(struct run_spec *o) { change; }
MORE(nothing, (void)o)
MORE(wall,      o->limits.wall_ms++)
MORE(cpu,       o->limits.cpu_ms++)
MORE(waiting,   o->limits.tool_wait_ms++)
MORE(sockets,   o->head.tools = 2)
MORE(memory,    o->limits.memory_bytes += 4096)
MORE(less,      o->limits.memory_bytes -= 4096)
MORE(pids,      o->limits.pids++)
MORE(cpus,      o->limits.cpus++)
MORE(files,     o->limits.files++)
MORE(tmp,       o->limits.tmp_bytes++)
MORE(workspace, o->limits.workspace_bytes++)
MORE(inodes,    o->limits.inodes++)
MORE(must,      o->limits.must = ~0ull)
MORE(waived,    o->limits.waived = 1)
MORE(all,       memset(&o->limits, 0xff, sizeof o->limits))
MORE(pipes,     o->head.stdin_pipe = o->head.result_pipe = 7)
MORE(command,   o->head.code_len = 0) /* without executing anything */
MORE(time,      o->asked = HUGE_VAL) /* a set-up that began then would never be late */
/* clang-format on */

static void lie_in_order(const struct mad_server *d, const struct lease *t, void (*more)(struct run_spec *))
{
	struct run_spec o = order_of(d, program);

	more(&o);
	send_order(t, &o);
	send_order_file(t, &o, program);
	judge(t);
}

static void lie_twice(const struct mad_server *d, const struct lease *t, void (*more)(struct run_spec *))
{
	struct run_spec o = order_of(d, short_program), again = order_of(d, short_program);

	more(&again);
	send_order(t, &o);
	send_order_file(t, &o, short_program);
	send_order(t, &again);
	send_order_file(t, &again, short_program);
	judge(t);
}

/* The fork is told, and nobody who watches it. */
static void lie_without_order(const struct mad_server *d, const struct lease *t, void (*more)(struct run_spec *))
{
	struct run_spec o = order_of(d, program);

	(void)more;
	send_order_file(t, &o, program);
	judge(t);
}

/* No order file comes: it is late by one clock or another. */
static void lie_without_order_file(const struct mad_server *d, const struct lease *t, void (*more)(struct run_spec *))
{
	struct run_spec o = order_of(d, program);

	more(&o);
	send_order(t, &o);
	judge(t);
}

static void lie_garbled(const struct mad_server *d, const struct lease *t, void (*more)(struct run_spec *))
{
	struct run_spec o = order_of(d, program);

	(void)more;
	(void)packet_send(t->fd[LEASE_SUPERVISOR], &o, sizeof o - 1, NULL, 0);
	send_order_file(t, &o, program);
	judge(t);
}

static void lie_with_descriptor(const struct mad_server *d, const struct lease *t, void (*more)(struct run_spec *))
{
	struct run_spec o = order_of(d, program);

	(void)more;
	(void)packet_send(t->fd[LEASE_SUPERVISOR], &o, sizeof o, &t->fd[LEASE_ORDER_FILE], 1);
	send_order_file(t, &o, program);
	judge(t);
}

/* The client is gone when the supervisor reads the order: no process reads the output of the program. */
static void lie_and_leave(const struct mad_server *d, const struct lease *t, void (*more)(struct run_spec *))
{
	struct run_spec o = order_of(d, program);

	(void)more;
	send_order(t, &o);
	send_order_file(t, &o, program);
	shutdown(t->fd[LEASE_SUPERVISOR], SHUT_RDWR);
	judge(t);
}

/* The order file says that a socket follows: what does, if anything, is no socket of a pair. */
static void lie_about_tools(const struct mad_server *d, const struct lease *t, void (*more)(struct run_spec *))
{
	struct run_spec      o = order_of(d, program);
	struct run_spec_head head = { .exec_args = o.head.exec_args, .code_len = o.head.code_len, .tools = 1 };
	struct err           e;

	send_order(t, &o);
	(void)!run_spec_file_write(t->fd[LEASE_ORDER_FILE], &head, exec_args, program, &e);
	(void)!send(t->fd[LEASE_ORDERS], &head, sizeof head, MSG_NOSIGNAL);
	more(&o);
	if (o.head.tools) { /* it was said that a directory comes */
		int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

		(void)packet_send(t->fd[LEASE_ORDERS], "t", 1, &root, 1);
		close(root);
	} else {
		(void)!send(t->fd[LEASE_ORDERS], "no socket", 9, MSG_NOSIGNAL);
	}
	judge(t);
}

/* The fork may be reading the order file, which becomes shorter and longer; more: and then is sealed, so that nothing changes it again. */
static void lie_about_order_file(const struct mad_server *d, const struct lease *t, void (*more)(struct run_spec *))
{
	struct run_spec o = order_of(d, program);
	int             fd = t->fd[LEASE_ORDER_FILE];

	send_order(t, &o);
	send_order_file(t, &o, program);
	for (int i = 0; i < 1000; i++)
		(void)!ftruncate(fd, i % 2 ? sizeof exec_args + sizeof program : 1);
	more(&o);
	if (o.head.tools)
		(void)fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_WRITE | F_SEAL_SEAL);
	judge(t);
}

/* more: with an order file and a word to the fork, which are the supervisor's to send */
static void lie_about_command(const struct mad_server *d, const struct lease *t, void (*more)(struct run_spec *))
{
	struct run_spec o = order_of(d, program), command = o;

	command.head.code_len = 0;
	command.head.executes = true;
	send_order(t, &command);
	more(&o);
	if (o.head.tools)
		send_order_file(t, &o, program);
	judge(t);
}

/* more: the second of two messages lets the session live for longer than the profile's ceiling */
static void lie_about_lifetime(const struct mad_server *d, const struct lease *t, void (*more)(struct run_spec *))
{
	struct run_spec       o = order_of(d, program);
	struct launch_request lifetime;

	memset(&lifetime, 0, sizeof lifetime); /* padding too */
	lifetime.kind = LAUNCH_SESSION_LIFETIME;
	lifetime.ms   = d->limits.lifetime_ms;
	send_order(t, &o);
	(void)packet_send(t->fd[LEASE_SUPERVISOR], &lifetime, sizeof lifetime, NULL, 0);
	send_order_file(t, &o, program);
	more(&o);
	lifetime.ms = o.head.tools ? d->limits.lifetime_ms + SESSION_GRACE_MS + 1 : WALL_MS;
	(void)packet_send(t->fd[LEASE_SUPERVISOR], &lifetime, sizeof lifetime, NULL, 0);
	judge(t);
}

static void lie_in_order_file(const struct mad_server *d, const struct lease *t, void (*more)(struct run_spec *))
{
	struct run_spec      o = order_of(d, program);
	struct run_spec_head l = { .exec_args = o.head.exec_args, .code_len = UINT32_MAX };

	(void)more;
	send_order(t, &o);
	(void)!run_spec_send_head(t->fd[LEASE_ORDERS], &l, -1);
	judge(t);
}

/* clang-format off */
static const struct row {
	const char *name;
	void (*tell)(const struct mad_server *, const struct lease *, void (*)(struct run_spec *));
	void (*more)(struct run_spec *);
} rows[] = {
	{ "more wall time than the ceiling",  lie_in_order,        more_wall },
	{ "more CPU time",                    lie_in_order,        more_cpu },
	{ "more waiting for tools than the ceiling", lie_in_order, more_waiting },
	{ "two sockets to tools",             lie_in_order,        more_sockets },
	{ "more memory",                      lie_in_order,        more_memory },
	{ "less memory",                      lie_in_order,        more_less },
	{ "more processes",                   lie_in_order,        more_pids },
	{ "more of a CPU",                    lie_in_order,        more_cpus },
	{ "more descriptors",                 lie_in_order,        more_files },
	{ "a larger /tmp",                    lie_in_order,        more_tmp },
	{ "a larger workspace",               lie_in_order,        more_workspace },
	{ "more files",                       lie_in_order,        more_inodes },
	{ "a layer that no cell has",         lie_in_order,        more_must },
	{ "a layer that is not missed",       lie_in_order,        more_waived },
	{ "all there is",                     lie_in_order,        more_all },
	{ "seven pipes of a kind",            lie_in_order,        more_pipes },
	{ "a command that executes nothing",  lie_in_order,        more_command },
	{ "an order of tomorrow",             lie_in_order,        more_time },
	{ "an order of tomorrow, no order file",  lie_without_order_file,  more_time },
	{ "an order that is too short",       lie_garbled,         more_nothing },
	{ "an order with a descriptor",       lie_with_descriptor, more_nothing },
	{ "an order file without an order",        lie_without_order,   more_nothing },
	{ "an order file that is none",            lie_in_order_file,       more_nothing },
	{ "an order file with tools and no socket", lie_about_tools,    more_nothing },
	{ "an order file with tools, which is a directory", lie_about_tools, more_sockets },
	{ "an order file that shrinks",       lie_about_order_file, more_nothing },
	{ "an order file that is sealed and shrinks", lie_about_order_file, more_sockets },
	{ "a command, and a program too",    lie_about_command,   more_sockets },
	{ "a command, no order file",        lie_about_command,   more_nothing },
	{ "a session that is renewed for longer than the ceiling", lie_about_lifetime, more_sockets },
	{ "a session that is renewed and ends sooner", lie_about_lifetime, more_nothing },
	{ "an order, and gone",              lie_and_leave,       more_nothing },
	{ "a lease used twice",              lie_twice,           more_nothing },
	{ "a lease used twice, for more",    lie_twice,           more_all },
	{ "the truth, for ever",             lie_in_order,        more_nothing },
};
/* clang-format on */

int main(int argc, char **argv)
{
	struct mad_server  d;
	struct lease       t;
	const struct row  *row = NULL;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (argc == 1)
			puts(rows[i].name);
		else if (strcmp(rows[i].name, argv[1]) == 0)
			row = &rows[i];
	if (argc != 6 || !row)
		return argc == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
	d.pid = start_monitor(argv[2], &d.monitor, &d.rules);
	begin(&d, argv[3], argv[4], strcmp(argv[5], "ready") == 0 ? WARM_READY : WARM_DEMAND);
	t = await_lease(&d);
	row->tell(&d, &t, row->more);
	run_honestly(&d);
	close(d.monitor);
	must(waitpid(d.pid, NULL, 0), "waitpid");
	return EXIT_SUCCESS;
}
