#define _GNU_SOURCE
#include "client_protocol.h"
#include "confine.h"
#include "door.h"
#include "launch.h"
#include "packet.h"
#include "sealed.h"
#include "sys.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* --- what a confined process cannot do --- */

static int try_file(void)
{
	return open("/etc/passwd", O_RDONLY | O_CLOEXEC);
}

static int try_to_make_a_file(void)
{
	return open("/tmp/brig-test-confine", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

static int try_program(void)
{
	char *const argv[] = { (char *)"true", NULL };

	return execv("/bin/true", argv);
}

static int try_network(void)
{
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int try_other_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int try_process(void)
{
	return fork();
}

static int try_signal(void)
{
	return kill(getppid(), 0);
}

static int try_trace(void)
{
	return (int)ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
}

static int try_namespace(void)
{
	return unshare(CLONE_NEWUSER);
}

static int try_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0;
}

static int try_to_be_seen(void)
{
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static int try_own_figures(void)
{
	return open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
}

static int try_pair(void)
{
	int pair[2];

	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static const struct {
	const char *name;
	int (*act)(void);
	int errnum; /* 0: it must work */
} rows[] = {
	{ "a confined door cannot open /etc/passwd", try_file, EACCES },
	{ "a confined door cannot make a file", try_to_make_a_file, EACCES },
	{ "a confined door cannot execute a program", try_program, EPERM },
	{ "a confined door cannot make a network socket", try_network, EPERM },
	{ "a confined door cannot make a socket to connect to others", try_other_socket, EPERM },
	{ "a confined door cannot fork", try_process, EPERM },
	{ "a confined door cannot send a signal", try_signal, EPERM },
	{ "a confined door cannot trace", try_trace, EPERM },
	{ "a confined door cannot make a namespace", try_namespace, EPERM },
	{ "a confined door cannot get executable memory", try_code, EPERM },
	{ "a confined door cannot make itself readable again", try_to_be_seen, EPERM },
	{ "a confined door reads what /proc says of processes", try_own_figures, 0 },
	{ "a confined door makes a pair of sockets for a supervisor", try_pair, 0 },
};

/* The errno of the row, 0 when it worked, 255 when the confinement itself failed. */
static int outcome(int (*act)(void))
{
	pid_t pid = fork();
	int   status;

	if (pid == 0) {
		const char *const *names;
		struct err         e;

		if (confine_door(-1, &names, &e) < 0)
			_exit(255);
		_exit(act() < 0 ? errno : 0);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 254;
}

/* The same without: a row that fails anyway proves nothing. The program replaces the process, and ends with 0. */
static int outcome_outside(int (*act)(void))
{
	pid_t pid = fork();
	int   status;

	if (pid == 0)
		_exit(act() < 0);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 254;
}

#ifdef __x86_64__
static bool dies_of_foreign_call(void)
{
	pid_t pid = fork();
	int   status;

	if (pid == 0) {
		const char *const *names;
		struct err         e;
		long               r;

		if (confine_door(-1, &names, &e) < 0)
			_exit(255);
		__asm__ volatile("int $0x80" : "=a"(r) : "a"(20) : "memory"); /* getpid of i386 */
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
}
#endif

/* --- what it still does --- */

/* A supervisor that has said everything already. */
static int start(void *self, struct run *ret, const struct backend_order *order, int streams[PIPES_MAX], struct err *e)
{
	(void)order, (void)streams, (void)e;
	*ret = (struct run){ .sock = *(int *)self, .pipes = 2 };
	return 0;
}

static void count(void *self, const struct served_profile *profile, struct backend_counts *ret)
{
	(void)self, (void)profile;
	*ret = (struct backend_counts){ 0 };
}

static pid_t keeper(void *self)
{
	(void)self;
	return 0;
}

static int lifeline(void *self)
{
	(void)self;
	return -1;
}

static const struct backend_ops ops = { .name = "test", .is_confinable = true, .start = start, .count = count, .keeper = keeper, .lifeline = lifeline };

static int speak_as_supervisor(void)
{
	struct launch_word started = { .kind = LAUNCH_STARTED }, ended = { .kind = LAUNCH_ENDED, .end = RUN_END_NONE };
	int                pair[2], out[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 || pipe2(out, O_CLOEXEC) < 0)
		_exit(1);
	ended.end.reason      = EXIT_exited;
	ended.end.wait_status = 0;
	if (packet_send(pair[1], &started, sizeof started, (int[]){ out[0], out[0] }, 2) < 0 || packet_send(pair[1], &ended, sizeof ended, NULL, 0) < 0)
		_exit(2);
	return pair[0];
}

static _Noreturn void be_door(int sock)
{
	static struct door d;
	int                supervisor = speak_as_supervisor();
	struct err         e;

	door_init(&d);
	snprintf(d.places.profiles[0], sizeof d.places.profiles[0], "%s/profiles", TEST_SOURCE);
	if (config_parse(&d.config, "{}", 2, &e) < 0 || door_open(&d, &e) < 0)
		_exit(3);
	access_own(&d.access, geteuid());
	profile_set_load(&d.profiles, NULL, NULL);
	d.backend = (struct backend){ &ops, &supervisor };
	if (confine_door(-1, &d.confinement, &e) < 0)
		_exit(4);
	if (door_serve_one(&d, sock, &e) < 0)
		_exit(5);
	door_close(&d);
	_exit(0);
}

static bool answers(int sock, enum answer_kind kind, int name, struct protocol_answer *a)
{
	static char bytes[PROTOCOL_MAX];
	int         fds[4];
	size_t      n;
	ssize_t     got = packet_receive(sock, bytes, sizeof bytes, fds, 4, &n);
	struct err  e   = { 0 };
	bool        ok  = got > 0 && protocol_parse_answer(a, bytes, (size_t)got, n, &e) == 0 && a->kind == kind &&
		  (int)(kind == ANSWER_REPLY ? a->reply : a->event) == name;

	if (!ok)
		printf("#   %.*s %s\n", (int)(got < 0 ? 0 : got), bytes, e.text);
	while (n)
		close(fds[--n]);
	return ok;
}

static void ask(int sock, const char *text, const int *fds, size_t n)
{
	(void)!packet_send(sock, text, strlen(text), fds, n);
}

static void check_door(void)
{
	int                    pair[2], status, code;
	struct protocol_answer a;
	struct err             e;
	pid_t                  pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		exit(EXIT_FAILURE);
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		fcntl(pair[1], F_SETFL, O_NONBLOCK);
		be_door(pair[1]);
	}
	close(pair[1]);
	ask(pair[0], "{\"op\":\"hello\"}", NULL, 0);
	tap_ok(answers(pair[0], ANSWER_REPLY, REQUEST_hello, &a), "a confined door says hello");
	protocol_answer_done(&a);
	ask(pair[0], "{\"op\":\"stats\"}", NULL, 0);
	tap_ok(answers(pair[0], ANSWER_REPLY, REQUEST_stats, &a), "a confined door tells its figures");
	tap_ok(json_is_integer(json_object_get(json_object_get(a.source, "door"), "memory_bytes")), "its own memory is among them");
	tap_ok(json_array_size(json_object_get(a.source, "confinement")) >= 4, "so is what holds it");
	protocol_answer_done(&a);
	ask(pair[0], "{\"op\":\"explain\",\"profile\":\"strict\"}", NULL, 0);
	tap_ok(answers(pair[0], ANSWER_REPLY, REQUEST_explain, &a), "a confined door explains a profile");
	protocol_answer_done(&a);
	code = sealed_open("code", "pass", 4, &e);
	ask(pair[0], "{\"op\":\"run\",\"env\":[\"A=1\"]}", &code, 1);
	tap_ok(answers(pair[0], ANSWER_EVENT, EVENT_started, &a), "a confined door hands on the streams of a run");
	protocol_answer_done(&a);
	tap_ok(answers(pair[0], ANSWER_EVENT, EVENT_ended, &a), "a confined door tells how the run ended");
	protocol_answer_done(&a);
	close(pair[0]);
	tap_ok(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0, "a private door ends when its client is gone");
}

int main(void)
{
	bool has_landlock = landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) >= 1;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int got;

		if (rows[i].errnum == EACCES && !has_landlock) {
			printf("ok # skip this kernel has no Landlock: %s\n", rows[i].name);
			continue;
		}
		got = outcome(rows[i].act);
		if (!tap_ok(got == rows[i].errnum, "%s", rows[i].name))
			printf("#   %s\n", strerror(got));
	}
	tap_ok(outcome_outside(try_file) == 0 && outcome_outside(try_program) == 0 && outcome_outside(try_network) == 0 &&
		       outcome_outside(try_code) == 0,
	       "without confinement a process can");
#ifdef __x86_64__
	tap_ok(dies_of_foreign_call(), "a call of a foreign ABI is the end");
#endif
	check_door();
	return tap_done();
}
