/*
 * spawn_client.c - how long whole processes take: from their start until they are reaped.
 *
 *     spawn_client [--open FD=FILE] EXPECT COMMAND [ARGUMENT]...
 *
 * Each one has an empty stdin and, when told so, FILE as its descriptor FD; it
 * must print EXPECT and end with status 0. @N@ in a word becomes a number that no
 * two of them share. See orders.h.
 */
#define _GNU_SOURCE
#include "fd.h"
#include "orders.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { WORDS_MAX = 256, PARALLEL_MAX = 64 };

struct process {
	pid_t   pid;
	int     out; /* the reading end */
	int64_t began;
};

struct spawner {
	const char *expect;
	char      **argv;
	const char *path; /* opened anew for each, for its offset is theirs; NULL: none */
	int         fd;
	unsigned    count;
	int         null, errors;
};

extern char **environ;

/* argv with @N@ filled in; each word lives until the next call. */
static char **tool_texts_init(struct spawner *s)
{
	static char *exec_args[WORDS_MAX], text[WORDS_MAX][512];
	size_t       n;

	s->count++;
	for (n = 0; s->argv[n] && n + 1 < WORDS_MAX; n++) {
		char *at = strstr(s->argv[n], "@N@");

		exec_args[n] = s->argv[n];
		if (!at)
			continue;
		snprintf(text[n], sizeof text[n], "%.*s%d-%u%s", (int)(at - s->argv[n]), s->argv[n], (int)getpid(), s->count, at + 3);
		exec_args[n] = text[n];
	}
	exec_args[n] = NULL;
	return exec_args;
}

static int start(struct spawner *s, struct process *ret)
{
	posix_spawn_file_actions_t actions;
	char                     **exec_args = tool_texts_init(s);
	int                        ends[2], r;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return perror("pipe"), -1;
	(void)fcntl(ends[1], F_SETFL, 0); /* what it writes to is an ordinary pipe */
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, s->null, 0);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	posix_spawn_file_actions_adddup2(&actions, s->errors, 2);
	if (s->path)
		posix_spawn_file_actions_addopen(&actions, s->fd, s->path, O_RDONLY, 0);
	*ret = (struct process){ .out = ends[0], .began = clock_us() };
	r    = posix_spawnp(&ret->pid, exec_args[0], &actions, NULL, exec_args, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (r == 0)
		return 0;
	fprintf(stderr, "%s: %s\n", exec_args[0], strerror(r));
	close(ends[0]);
	return -1;
}

static int complain(const struct spawner *s, int status, const char *said, size_t len)
{
	char    text[2000];
	ssize_t n = pread(s->errors, text, sizeof text, 0);

	fprintf(stderr, "%s: %s %d, printed \"%.*s\", said: %.*s\n", s->argv[0], WIFSIGNALED(status) ? "signal" : "status",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), (int)(len < 200 ? len : 200), said, n > 0 ? (int)n : 0, text);
	return -1;
}

static int judge(struct spawner *s, struct process *p, int status, int64_t ended, struct figures *f)
{
	char      said[4096];
	scoped_fd out = p->out;
	ssize_t   n   = read(out, said, sizeof said);
	size_t    len = n > 0 ? (size_t)n : 0;

	p->pid = 0;
	if (status != 0 || len != strlen(s->expect) || memcmp(said, s->expect, len) != 0)
		return complain(s, status, said, len);
	figures_add(f, (struct figure){ "run", -1, ended - p->began, -1 });
	return 0;
}

static int once(void *self, struct figures *f)
{
	struct spawner *s = self;
	struct process  p;
	int             status;

	if (start(s, &p) < 0)
		return -1;
	while (waitpid(p.pid, &status, 0) < 0)
		if (errno != EINTR)
			return perror("waitpid"), -1;
	return judge(s, &p, status, clock_us(), f);
}

static int reap(struct spawner *s, struct process *p, unsigned n, int64_t until, struct figures *f)
{
	int     status;
	pid_t   pid   = waitpid(-1, &status, 0);
	int64_t ended = clock_us();

	for (unsigned i = 0; i < n; i++) {
		if (pid <= 0 || p[i].pid != pid)
			continue;
		if (judge(s, &p[i], status, ended, f) < 0)
			return -1;
		return ended < until ? start(s, &p[i]) : 0;
	}
	return 0;
}

static bool any_runs(const struct process *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (p[i].pid)
			return true;
	return false;
}

static int sustained(void *self, int64_t until, unsigned parallel, struct figures *f)
{
	struct spawner *s = self;
	struct process  p[PARALLEL_MAX] = { 0 };
	int             r = parallel > PARALLEL_MAX ? fprintf(stderr, "at most %d at once\n", PARALLEL_MAX), -1 : 0;

	for (unsigned i = 0; r == 0 && i < parallel; i++)
		r = start(s, &p[i]);
	while (r == 0 && any_runs(p, parallel))
		r = reap(s, p, parallel, until, f);
	return r;
}

static int take_open(struct spawner *s, const char *message)
{
	char *end;

	s->fd   = (int)strtol(message, &end, 10);
	s->path = end + 1;
	return s->fd > 2 && *end == '=' ? 0 : -1;
}

static int usage(void)
{
	fputs("usage: spawn_client [--open FD=FILE] EXPECT COMMAND [ARGUMENT]...\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	struct spawner s = { 0 };

	if (argc > 2 && strcmp(argv[1], "--open") == 0) {
		if (take_open(&s, argv[2]) < 0)
			return usage();
		argc -= 2;
		argv += 2;
	}
	if (argc < 3)
		return usage();
	s.expect = argv[1];
	s.argv   = argv + 2;
	s.null   = open("/dev/null", O_RDONLY | O_CLOEXEC);
	s.errors = memfd_create("stderr", MFD_CLOEXEC);
	if (s.null < 0 || s.errors < 0)
		return perror("spawn_client"), 1;
	(void)fcntl(s.errors, F_SETFL, O_APPEND);
	return orders_serve(&(struct orders){ &s, once, sustained });
}
