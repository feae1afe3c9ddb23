#define _GNU_SOURCE
#include "session.h"

#include "clock.h"
#include "fd.h"
#include "interrupt.h"
#include "program_report.h"
#include "run_talk.h"
#include "text.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static_assert((int)EARLY_ID_LEN == RUN_ID_LEN && (int)EARLY_DATAGRAM_MAX == PROTOCOL_MAX && (int)EARLY_FDS_MAX == DATAGRAM_FDS_MAX, "early.h says them again");

enum { PENDING_MAX = 64 * 1024 };

void session_init(struct session *s, struct server *server, struct request *request)
{
	bool keep = request->json || request->mode == MODE_check;

	*s        = (struct session){ .server = *server, .request = request, .stdin_from = fd_take(&request->stdin_fd), .stdin_to = -1, .moving = RUN_FILES_NONE };
	s->out    = (struct stream){ .fd = -1, .to = keep ? -1 : STDOUT_FILENO };
	s->err    = (struct stream){ .fd = -1, .to = keep ? -1 : STDERR_FILENO };
	s->report = (struct stream){ .fd = -1, .to = -1, .keep = PROGRAM_REPORT_MAX };
	*server   = SERVER_NONE;
	if (s->stdin_from >= 0 && !(s->pending = malloc(PENDING_MAX)))
		err_set(&s->lost, ERR_LIMIT, "out of memory");
}

void session_done(struct session *s)
{
	interrupt_disarm();
	fd_closep(&s->stdin_from);
	fd_closep(&s->stdin_to);
	stream_done(&s->out);
	stream_done(&s->err);
	stream_done(&s->report);
	free(s->pending);
	json_decref(s->ended);
	json_decref(s->files);
	json_decref(s->refused);
	(void)server_close(&s->server);
}

/* --- stdin --- */

static void close_stdin(struct session *s)
{
	fd_closep(&s->stdin_to);
	fd_closep(&s->stdin_from);
}

static void fill_pending(struct session *s)
{
	ssize_t n = read(s->stdin_from, s->pending, PENDING_MAX);

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		close_stdin(s);
		return;
	}
	s->pending_at  = 0;
	s->pending_len = (size_t)n;
}

static void write_pending(struct session *s)
{
	ssize_t n = write(s->stdin_to, s->pending + s->pending_at, s->pending_len - s->pending_at);

	if (n > 0)
		s->pending_at += (size_t)n;
	else if (n < 0 && errno != EINTR && errno != EAGAIN)
		close_stdin(s); /* the program closed it, or is gone */
}

/* --- output --- */

static void name_limit(struct session *s, const char *name, uint64_t value)
{
	const struct field *f = field_find(limits_fields, name);
	char                text[32];

	if (!f)
		return;
	field_print_text(f, value, text, sizeof text);
	snprintf(s->limit, sizeof s->limit, "--%s %s", limits_option(f->name), text);
}

/* Once: what is read until the program is dead would ask again and again. */
static void cancel(struct session *s, const char *reason)
{
	json_t    *request = run_talk_cancel(s->run, reason);
	struct err ignored; /* whoever is gone will be missed by the loop */

	if (!s->cancelled)
		(void)!datagram_send(s->server.sock, request, NULL, 0, &ignored);
	s->cancelled = true;
	json_decref(request);
}

static void on_output(struct session *s, struct stream *stream)
{
	switch (stream_read(stream)) {
	case STREAM_GOES_ON:
		stream->rests_ms = stream_rests(stream->little) ? clock_ms(CLOCK_MONOTONIC) + STREAM_REST_MS : 0;
		return;
	case STREAM_FLOOD:
		if (stream != &s->report)
			name_limit(s, "output_bytes", stream->keep);
		cancel(s, "output_limit");
		return;
	case STREAM_BROKEN:
		if (stream != &s->report) /* without it the run is what it is: the record says what is missing */
			cancel(s, "cancelled");
		return;
	}
}

/* --- what brigd says --- */

static void on_started(void *owner, struct run_start *start)
{
	struct session *s = owner;

	if (s->started) {
		err_set(&s->lost, ERR_PROTOCOL, "brigd broke the protocol: a second start");
		return;
	}
	s->started   = true;
	s->out.keep  = s->err.keep = start->output_bytes;
	s->out.fd    = fd_take(&start->fd[RUN_STDOUT]);
	s->err.fd    = fd_take(&start->fd[RUN_STDERR]);
	s->report.fd = fd_take(&start->fd[RUN_RESULT]);
	s->stdin_to  = fd_take(&start->fd[RUN_STDIN]);
	snprintf(s->run, sizeof s->run, "%s", start->run);
	interrupt_arm(s->server.sock, s->run);
}

/* In a terminal: a prompt that does not come back is a riddle. */
static void on_waiting(void *owner, const char *run, const char *why)
{
	const struct session *s = owner;
	char                  plain[200];

	(void)run;
	if (!isatty(STDERR_FILENO) || s->started)
		return;
	snprintf(plain, sizeof plain, "%s", why);
	text_make_plain(plain);
	fprintf(stderr, "brig: waiting (%s); Ctrl-C gives up\n", plain);
}

static void on_limit(void *owner, const char *name, uint64_t value)
{
	name_limit(owner, name, value);
}

static void on_ended(void *owner, const json_t *event)
{
	((struct session *)owner)->ended = json_incref((json_t *)event);
}

static void on_refused(void *owner, const json_t *answer)
{
	struct session *s = owner;

	if (!s->started)
		s->refused = json_incref((json_t *)answer);
}

static const struct run_talk talk = { .waiting = on_waiting, .started = on_started, .limit = on_limit, .ended = on_ended, .refused = on_refused };

/* " (killed by SIGKILL)", of one that was ours. */
static const char *tell_status(int status, char *buf, size_t len)
{
	*buf = 0;
	if (WIFSIGNALED(status))
		snprintf(buf, len, " (killed by SIG%s)", sigabbrev_np(WTERMSIG(status)) ? sigabbrev_np(WTERMSIG(status)) : "?");
	else if (WEXITSTATUS(status))
		snprintf(buf, len, " (exit status %d)", WEXITSTATUS(status));
	return buf;
}

/* A service that systemd tried to start for us, and gave up: what we sent was not read. */
static bool blame_service(struct session *s)
{
	char why[360];

	if (s->started || !server_failure(&s->server, why, sizeof why))
		return false;
	s->sent = false;
	err_set(&s->lost, ERR_MISSING, "%.60s: the service cannot start: %s", s->server.name, why);
	return true;
}

/* Not refused: nobody knows whether the program had started. */
static void on_silence(struct session *s)
{
	char how[48];

	interrupt_disarm();
	if (blame_service(s))
		return;
	tell_status(server_close(&s->server), how, sizeof how);
	err_set(&s->lost, ERR_SETUP, "brigd was killed, or could not tell how the run ended: %.200s%s", s->server.name, how);
}

static void on_server(struct session *s)
{
	scoped_datagram d = DATAGRAM_NONE;

	switch (datagram_receive(s->server.sock, &d, &s->lost)) {
	case DATAGRAM_CAME:
		run_talk_hear(&talk, s, &d);
		return;
	case DATAGRAM_END:
		on_silence(s);
		return;
	case DATAGRAM_BROKEN:
		(void)blame_service(s);
		return;
	}
}

/* --- the loop --- */

/* Its fd, or -1 while it rests; *wait_ms is then no longer than that. */
static int fd_of(const struct stream *stream, int *wait_ms)
{
	if (stream->fd < 0 || stream->rests_ms == 0 || stream->rests_ms <= clock_ms(CLOCK_MONOTONIC))
		return stream->fd;
	*wait_ms = STREAM_REST_MS;
	return -1;
}

static void attend(struct session *s)
{
	bool          has_pending = s->pending_at < s->pending_len;
	int           wait_ms     = -1;
	struct pollfd fds[]       = {
		{ s->server.sock, POLLIN, 0 },
		{ fd_of(&s->out, &wait_ms), POLLIN, 0 },
		{ fd_of(&s->err, &wait_ms), POLLIN, 0 },
		{ fd_of(&s->report, &wait_ms), POLLIN, 0 },
		{ has_pending ? s->stdin_to : -1, POLLOUT, 0 },
		{ s->stdin_to >= 0 && !has_pending ? s->stdin_from : -1, POLLIN, 0 },
	};

	if (poll(fds, ARRAY_LEN(fds), wait_ms) < 0)
		return;
	if (fds[1].revents)
		on_output(s, &s->out);
	if (fds[2].revents)
		on_output(s, &s->err);
	if (fds[3].revents)
		on_output(s, &s->report);
	if (fds[4].revents)
		write_pending(s);
	if (fds[5].revents)
		fill_pending(s);
	if (fds[0].revents)
		on_server(s);
}

/* A brigd that could not serve says why before it goes, and hears nothing. */
static void hear_last_word(struct session *s)
{
	struct err    sent = s->lost;
	struct pollfd p    = { .fd = s->server.sock, .events = POLLIN };

	if (poll(&p, 1, 0) > 0)
		on_server(s);
	if (!blame_service(s))
		s->lost = sent;
}

static void send_request(struct session *s)
{
	if (datagram_send(s->server.sock, s->request->message, s->request->fd, s->request->fds, &s->lost) < 0)
		hear_last_word(s);
	else
		s->sent = true;
}

/* --- what began early --- */

static void take_up_stream(struct stream *s, const struct early_stream *early, uint64_t keep)
{
	s->fd     = early->fd;
	s->keep   = keep;
	s->seen   = early->seen;
	s->little = early->little;
	s->broken = early->broken;
	s->unread = early->unread;
}

static void take_up_start(struct session *s, const struct early *early)
{
	s->started = true;
	snprintf(s->run, sizeof s->run, "%s", early->run);
	take_up_stream(&s->out, &early->out, early->keep);
	take_up_stream(&s->err, &early->err, early->keep);
	interrupt_arm(s->server.sock, s->run);
	if (s->out.broken || s->err.broken)
		cancel(s, "cancelled");
}

void session_take_up(struct session *s, const struct early *early)
{
	scoped_datagram d = DATAGRAM_NONE;

	s->sent = early->sent;
	if (early->started)
		take_up_start(s, early);
	if (early->masked)
		interrupt_let_in(early->mask);
	errno = early->lost;
	if (errno)
		err_sys(&s->lost, "brigd cannot be heard");
	else if (early->len && datagram_parse(&d, early->text, early->len, early->fd, early->fds, &s->lost) == 0)
		run_talk_hear(&talk, s, &d);
}

/*
 * Until brigd has cleaned up and the last byte is read. Every process of the
 * cell is dead by then; the pipes need not be closed, for a program may have
 * sent its end of one to somebody outside, through a socket that --ro shows.
 */
void session_run(struct session *s)
{
	if (!s->sent && s->lost.kind == ERR_NONE && run_files_start(&s->moving, s->request, &s->lost) == 0)
		send_request(s);
	run_files_sent(s->request);
	while (!s->ended && !s->refused && s->lost.kind == ERR_NONE)
		attend(s);
	stream_drain(&s->out);
	stream_drain(&s->err);
	stream_drain(&s->report);
	close_stdin(s);
	interrupt_disarm();
	fd_closep(&s->server.sock); /* a private brigd ends while we print */
	s->files = run_files_finish(&s->moving);
}
