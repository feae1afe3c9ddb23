#define _GNU_SOURCE
#include "confine.h"
#include "taken_over.h"

#include <fcntl.h>
#include <sys/socket.h>

/* --- what a confined process cannot do --- */

static int try_file(void)
{
	return open("/etc/passwd", O_RDONLY | O_CLOEXEC);
}

static int try_to_make_a_file(void)
{
	return open("/tmp/brig-test-confine", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

static int try_network(void)
{
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int try_other_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
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
	{ "a confined server cannot open /etc/passwd", try_file, EACCES },
	{ "a confined server cannot make a file", try_to_make_a_file, EACCES },
	{ "a confined server cannot execute a program", try_program, EPERM },
	{ "a confined server cannot make a network socket", try_network, EPERM },
	{ "a confined server cannot make a socket to connect to others", try_other_socket, EPERM },
	{ "a confined server cannot fork", try_process, EPERM },
	{ "a confined server cannot send a signal", try_signal, EPERM },
	{ "a confined server cannot trace", try_trace, EPERM },
	{ "a confined server cannot make a namespace", try_namespace, EPERM },
	{ "a confined server cannot get executable memory", try_code, EPERM },
	{ "a confined server cannot make itself readable again", try_to_be_seen, EPERM },
	{ "a confined server reads what /proc says of processes", try_own_figures, 0 },
	{ "a confined server makes a pair of sockets for a supervisor", try_pair, 0 },
};

static int confine_as_the_server(void)
{
	const char *const *names;
	struct err         e;

	return confine_server(-1, &names, &e);
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
/* The signal that a process dies of which calls getpid of i386; 0: it lives; -1: it ends otherwise. */
static int end_by_foreign_call(bool is_confined)
{
	pid_t pid = fork();
	int   status;

	if (pid == 0) {
		const char *const *names;
		struct err         e;
		long               r;

		if (is_confined && confine_server(-1, &names, &e) < 0)
			_exit(255);
		__asm__ volatile("int $0x80" : "=a"(r) : "a"(20) : "memory");
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || (WIFEXITED(status) && WEXITSTATUS(status) != 0))
		return -1; /* a sanitizer has told of the signal, and ended the process */
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}
#endif

int main(void)
{
	bool has_landlock = landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) >= 1;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int got;

		if (rows[i].errnum == EACCES && !has_landlock) {
			printf("ok # skip this kernel has no Landlock: %s\n", rows[i].name);
			continue;
		}
		got = outcome(rows[i].act, confine_as_the_server);
		if (!tap_ok(got == rows[i].errnum, "%s", rows[i].name))
			printf("#   %s\n", strerror(got));
	}
	tap_ok(outcome_outside(try_file) == 0 && outcome_outside(try_program) == 0 && outcome_outside(try_network) == 0 &&
		       outcome_outside(try_code) == 0,
	       "without confinement a process can");
#ifdef __x86_64__
	if (end_by_foreign_call(false) == 0)
		tap_ok(end_by_foreign_call(true) == SIGSYS, "a call of a foreign ABI is the end");
	else
		printf("ok # skip this kernel has no 32-bit calls: a call of a foreign ABI is the end\n");
#endif
	return tap_done();
}
