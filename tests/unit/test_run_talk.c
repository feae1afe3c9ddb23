/* test_run_talk.c - what brigd says of a run reaches who asked for it, and descriptors that nobody takes are closed */
#define _GNU_SOURCE
#include "fd.h"
#include "run_talk.h"
#include "tap.h"

#include <fcntl.h>
#include <unistd.h>

/* What was heard, as a sentence, and the streams that are taken. */
struct listener {
	char said[200];
	bool takes;
	int  fd[RUN_STREAMS];
};

static void on_waiting(void *owner, const char *run, const char *why)
{
	snprintf(((struct listener *)owner)->said, 200, "%s waits: %s", run, why);
}

static void on_started(void *owner, struct run_start *start)
{
	struct listener *l = owner;

	snprintf(l->said, sizeof l->said, "%s started, keep %u", start->run, (unsigned)start->output_bytes);
	for (int i = 0; i < RUN_STREAMS; i++)
		l->fd[i] = l->takes ? fd_take(&start->fd[i]) : start->fd[i];
}

static void on_limit(void *owner, const char *name, uint64_t value)
{
	snprintf(((struct listener *)owner)->said, 200, "%s of %u ends it", name, (unsigned)value);
}

static void on_ended(void *owner, const json_t *event)
{
	snprintf(((struct listener *)owner)->said, 200, "ended: %s", json_string_value(json_object_get(json_object_get(event, "record"), "exit_reason")));
}

static void on_refused(void *owner, const json_t *answer)
{
	snprintf(((struct listener *)owner)->said, 200, "refused: %s", json_string_value(json_object_get(json_object_get(answer, "error"), "message")));
}

static const struct run_talk talk = { .waiting = on_waiting, .started = on_started, .limit = on_limit, .ended = on_ended, .refused = on_refused };

static const struct {
	const char *text, *said, *name;
} rows[] = {
	{ "{\"event\":\"waiting\",\"run\":\"r\",\"why\":\"runs\"}", "r waits: runs", "a run waits" },
	{ "{\"event\":\"limit\",\"run\":\"r\",\"name\":\"pids\",\"value\":8,\"ends\":true}", "pids of 8 ends it", "a limit ends it" },
	{ "{\"event\":\"limit\",\"run\":\"r\",\"name\":\"pids\",\"value\":8,\"ends\":false}", "", "one that only refused something is not told" },
	{ "{\"event\":\"ended\",\"run\":\"r\",\"record\":{\"exit_reason\":\"exited\"},\"exec_error\":null,\"lost\":[],\"left\":null}", "ended: exited", "it ends" },
	{ "{\"error\":{\"code\":\"busy\",\"message\":\"full\",\"field\":null}}", "refused: full", "it is refused" },
	{ "{\"reply\":\"cancel\",\"run\":\"r\"}", "", "the answer to a cancel says nothing" },
};

static void hear(struct listener *l, const char *text, const int *fds, size_t n)
{
	scoped_datagram d;
	struct err      e;

	tap_ok(datagram_parse(&d, text, strlen(text), fds, n, &e) == 0, "brigd may say it");
	run_talk_handle(&talk, l, &d);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int other_end(void)
{
	int end[2];

	if (pipe2(end, O_CLOEXEC) < 0)
		exit(1);
	close(end[1]);
	return end[0];
}

#define STARTED "{\"event\":\"started\",\"run\":\"r\",\"streams\":[\"stdout\",\"news\",\"stdin\",\"stdout\"],\"output_bytes\":1024}"

static void check_streams(bool takes)
{
	struct listener l      = { .takes = takes };
	int             fds[4] = { other_end(), other_end(), other_end(), other_end() };

	hear(&l, STARTED, fds, ARRAY_LEN(fds));
	tap_is(l.said, "r started, keep 1024", "a run starts");
	tap_ok(l.fd[RUN_STDOUT] == fds[0] && l.fd[RUN_STDIN] == fds[2] && l.fd[RUN_STDERR] < 0 && l.fd[RUN_RESULT] < 0, "each stream is found by its name");
	tap_ok(!is_open(fds[1]) && !is_open(fds[3]), "a name that nobody knows, and one that comes twice, are closed");
	tap_ok(is_open(fds[0]) == takes && is_open(fds[2]) == takes, takes ? "what is taken stays open" : "what is not taken is closed");
	if (takes)
		tap_ok(fcntl(fds[0], F_GETFL) & O_NONBLOCK && fcntl(fds[2], F_GETFL) & O_NONBLOCK, "and does not block");
	for (size_t i = 0; takes && i < ARRAY_LEN(l.fd); i++)
		fd_closep(&l.fd[i]);
}

static void is_cancel(const char *run, const char *reason, const char *want, const char *name)
{
	json_t *j    = run_talk_cancel(run, reason);
	char   *text = j ? json_dumps(j, JSON_COMPACT) : NULL;

	tap_is(text, want, name);
	free(text);
	json_decref(j);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct listener l = { .takes = false };

		hear(&l, rows[i].text, NULL, 0);
		tap_is(l.said, rows[i].said, rows[i].name);
	}
	check_streams(true);
	check_streams(false);
	is_cancel("r", "output_limit", "{\"op\":\"cancel\",\"run\":\"r\",\"reason\":\"output_limit\"}", "a cancel says why");
	is_cancel("r", NULL, "{\"op\":\"cancel\",\"run\":\"r\"}", "or that somebody wants so");
	tap_ok(!run_talk_cancel("\xff", NULL), "a name that is not UTF-8 is none");
	return tap_done();
}
