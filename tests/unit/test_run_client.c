/* test_run_client.c - brigd's messages about a run reach its callbacks, and descriptors that are not taken are closed */
#define _GNU_SOURCE
#include "fd.h"
#include "run_client.h"
#include "tap.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

/* A run, what was received last, as a sentence, and the stdin that is taken. */
struct listener {
	struct run_client run;
	char              got[200];
	bool              takes;
	int               fd;
};

static void on_waiting(void *owner, const char *why)
{
	struct listener *l = owner;

	snprintf(l->got, sizeof l->got, "%s waits: %s", l->run.id, why);
}

static void on_started(void *owner, int fd[RUN_STREAMS])
{
	struct listener *l = owner;

	snprintf(l->got, sizeof l->got, "%s started, keep %u", l->run.id, (unsigned)l->run.out.stream.keep);
	l->fd = l->takes ? fd_take(&fd[RUN_STDIN]) : fd[RUN_STDIN];
}

static void on_ended(void *owner, const json_t *event)
{
	struct listener *l = owner;

	snprintf(l->got, sizeof l->got, "ended: %s", json_string_value(json_object_get(json_object_get(event, "record"), "exit_reason")));
}

static void on_refused(void *owner, const json_t *answer)
{
	struct listener *l = owner;

	snprintf(l->got, sizeof l->got, "refused: %s", json_string_value(json_object_get(json_object_get(answer, "error"), "message")));
}

static void on_lost(void *owner, const struct err *why)
{
	struct listener *l = owner;

	snprintf(l->got, sizeof l->got, "lost: %.100s", why ? why->text : "closed");
}

static const struct run_events events = { .waiting = on_waiting, .started = on_started, .ended = on_ended, .refused = on_refused, .lost = on_lost };

static const struct {
	const char *text, *got, *name;
} rows[] = {
	{ "{\"event\":\"waiting\",\"run\":\"r\",\"why\":\"runs\"}", "r waits: runs", "a run waits" },
	{ "{\"event\":\"limit\",\"run\":\"r\",\"name\":\"pids\",\"value\":8,\"ends\":true}", "pids of 8 ends it", "a limit that ends it is kept" },
	{ "{\"event\":\"limit\",\"run\":\"r\",\"name\":\"pids\",\"value\":8,\"ends\":false}", "", "one that only refused something is not" },
	{ "{\"event\":\"ended\",\"run\":\"r\",\"record\":{\"exit_reason\":\"exited\"},\"exec_error\":null,\"lost\":[],\"left\":null}", "ended: exited", "it ends" },
	{ "{\"error\":{\"code\":\"busy\",\"message\":\"full\",\"field\":null}}", "refused: full", "it is refused" },
	{ "{\"reply\":\"cancel\",\"run\":\"r\"}", "", "the answer to a cancel calls nothing" },
};

static void receive(struct listener *l, const char *text, const int *fds, size_t n)
{
	scoped_datagram d;
	struct err      e;

	tap_ok(datagram_parse(&d, text, strlen(text), fds, n, &e) == 0, "brigd may send it");
	run_client_handle(&l->run, &d);
	if (*l->run.limit)
		snprintf(l->got, sizeof l->got, "%s of %u ends it", l->run.limit, (unsigned)l->run.limit_value);
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
	int             again[4] = { other_end(), other_end(), other_end(), other_end() };

	run_client_init(&l.run, NULL, -1, &events, &l);
	receive(&l, STARTED, fds, ARRAY_LEN(fds));
	tap_is(l.got, "r started, keep 1024", "a run starts");
	tap_ok(l.run.out.stream.fd == fds[0] && l.fd == fds[2] && l.run.err.stream.fd < 0 && l.run.report.stream.fd < 0, "each stream is found by its name");
	tap_ok(!is_open(fds[1]) && !is_open(fds[3]), "an unknown name, and one that comes twice, are closed");
	tap_ok(is_open(fds[2]) == takes, takes ? "what is taken stays open" : "what is not taken is closed");
	tap_ok(fcntl(fds[0], F_GETFL) & O_NONBLOCK && (!takes || fcntl(fds[2], F_GETFL) & O_NONBLOCK), "and does not block");
	receive(&l, STARTED, again, ARRAY_LEN(again));
	tap_is(l.got, "lost: brigd broke the protocol: a second start", "a second start is refused");
	run_client_done(&l.run);
	tap_ok(!is_open(fds[0]), "output is closed at the end");
	if (takes)
		fd_closep(&l.fd);
}

/* A cancel is sent once, and as soon as the id is known. */
static void check_cancel(void)
{
	struct listener l = { .takes = false };
	char            text[200];
	int             pair[2];
	ssize_t         n;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		exit(1);
	run_client_init(&l.run, NULL, pair[0], &events, &l);
	run_client_interrupt_or_cancel(&l.run, "cancelled");
	tap_ok(recv(pair[1], text, sizeof text, MSG_DONTWAIT) < 0, "a run without an id is not cancelled yet");
	receive(&l, "{\"event\":\"waiting\",\"run\":\"r\",\"why\":\"runs\"}", NULL, 0);
	n = recv(pair[1], text, sizeof text - 1, MSG_DONTWAIT);
	text[n > 0 ? n : 0] = 0;
	tap_ok(strstr(text, "cancel") && strstr(text, "cancelled"), "it is cancelled as soon as its id is known");
	run_client_interrupt_or_cancel(&l.run, "output_limit");
	tap_ok(recv(pair[1], text, sizeof text, MSG_DONTWAIT) < 0, "and only once");
	close(pair[1]);
	run_client_receive(&l.run);
	tap_is(l.got, "lost: closed", "the end of the connection is the end of the run");
	run_client_done(&l.run);
	close(pair[0]);
}

static void is_cancel(const char *run, const char *reason, const char *want, const char *name)
{
	json_t *j    = cancel_request_to_json(run, reason);
	char   *text = j ? json_dumps(j, JSON_COMPACT) : NULL;

	tap_is(text, want, name);
	free(text);
	json_decref(j);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct listener l = { .takes = false };

		run_client_init(&l.run, NULL, -1, &events, &l);
		receive(&l, rows[i].text, NULL, 0);
		tap_is(l.got, rows[i].got, rows[i].name);
	}
	check_streams(true);
	check_streams(false);
	check_cancel();
	is_cancel("r", "output_limit", "{\"op\":\"cancel\",\"run\":\"r\",\"reason\":\"output_limit\"}", "a cancel says why");
	is_cancel("r", NULL, "{\"op\":\"cancel\",\"run\":\"r\"}", "or that somebody wants so");
	tap_ok(!cancel_request_to_json("\xff", NULL), "a name that is not UTF-8 is refused");
	return tap_done();
}
