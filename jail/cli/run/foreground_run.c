#define _GNU_SOURCE
#include "foreground_run.h"

#include "clock.h"
#include "fd.h"
#include "file.h"
#include "interrupt.h"
#include "program_report.h"
#include "text.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

static_assert((int)EARLY_ID_LEN == RUN_ID_LEN && (int)EARLY_DATAGRAM_MAX == PROTOCOL_MAX && (int)EARLY_FDS_MAX == DATAGRAM_FDS_MAX, "early.h says them again");

enum { PENDING_MAX = 64 * 1024 };

void foreground_run_init(struct foreground_run *c, struct brigd *server, struct request *request, const struct run_events *events)
{
	bool keep = request->json || request->mode == MODE_check || request->mode == MODE_resolve;

	*c = (struct foreground_run){ .server = *server, .request = request, .stdin_from = fd_take(&request->stdin_fd), .stdin_to = -1, .moving = RUN_FILES_NONE };
	run_client_init(&c->run, NULL, server->sock, events, c);
	c->run.out.stream.to = keep ? -1 : STDOUT_FILENO;
	c->run.err.stream.to = keep ? -1 : STDERR_FILENO;
	*server              = BRIGD_NONE;
	if (c->stdin_from >= 0 && !(c->pending = malloc(PENDING_MAX)))
		err_set(&c->lost, ERR_LIMIT, "out of memory");
}

void foreground_run_done(struct foreground_run *c)
{
	interrupt_disarm();
	fd_closep(&c->stdin_from);
	fd_closep(&c->stdin_to);
	run_client_done(&c->run);
	free(c->pending);
	json_decref(c->opened);
	json_decref(c->ended);
	json_decref(c->files);
	json_decref(c->refused);
	(void)brigd_close(&c->server);
}

/* --- stdin --- */

/*
 * brig cannot know whether a program will read, and takes the input before it does. It gives back to a file what the program did not
 * read, so that a loop of a shell goes on as after a command that does not read. What is in the pipe can be counted until brig closes
 * it. So the pipe holds one page until the program has read that, and only then does brig close it at the end of the input. Once a
 * program has read a page, the pipe gets its size, and brig closes it at once: all of it counts as read.
 */
static void stdin_close(struct foreground_run *c)
{
	fd_closep(&c->stdin_to);
	fd_closep(&c->stdin_from);
}

static size_t stdin_pending_bytes(const struct foreground_run *c)
{
	return c->pending_len - c->pending_at;
}

/* The program reads no more. It could have written to the pipe, so no more than was taken counts. */
static void stdin_seek_back_unread(struct foreground_run *c)
{
	int in_pipe = 0;

	if (c->stdin_to >= 0) {
		(void)ioctl(c->stdin_to, FIONREAD, &in_pipe);
		c->unread     = stdin_pending_bytes(c) + (in_pipe > 0 ? (uint64_t)in_pipe : 0);
		c->unread     = c->unread < c->taken ? c->unread : c->taken;
		c->given_back = c->unread && lseek(c->stdin_from, -(off_t)c->unread, SEEK_CUR) >= 0;
	}
	stdin_close(c);
}

static void stdin_read(struct foreground_run *c)
{
	ssize_t n = read(c->stdin_from, c->pending, PENDING_MAX);

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		c->input_ended = true;
		if (!c->narrow_of)
			stdin_close(c);
		return;
	}
	c->taken += (uint64_t)n;
	c->pending_at  = 0;
	c->pending_len = (size_t)n;
}

static void stdin_write(struct foreground_run *c)
{
	ssize_t n;

	if (c->narrow_of && c->taken > stdin_pending_bytes(c)) {
		(void)fcntl(c->stdin_to, F_SETPIPE_SZ, c->narrow_of); /* EPERM when the user has many pipes: then this one stays narrow */
		c->narrow_of = 0;
	}
	n = write(c->stdin_to, c->pending + c->pending_at, stdin_pending_bytes(c));
	if (n > 0)
		c->pending_at += (size_t)n;
	else if (n < 0 && errno != EINTR && errno != EAGAIN)
		stdin_seek_back_unread(c); /* the program closed it, or is gone */
}

/* --- output --- */

char *foreground_run_print_hit_limit(const struct foreground_run *c, char *buf, size_t len)
{
	const struct field *f = field_find(limits_fields, c->run.limit);
	char                text[32];

	*buf = 0;
	if (!f)
		return buf;
	field_print_text(f, c->run.limit_value, text, sizeof text);
	snprintf(buf, len, "--%s %s", limits_option_name(f->name), text);
	return buf;
}

/* Output that cannot be passed on ends the run. Without a report it goes on; --json names the reason. */
static void run_on_output(void *owner, struct run_pipe *p)
{
	struct foreground_run *c = owner;
	struct stream         *s = &p->stream;

	s->rests_ms = stream_rests(s->little) ? clock_ms(CLOCK_MONOTONIC) + STREAM_REST_MS : 0;
	if (s->broken && p != &c->run.report)
		run_client_interrupt_or_cancel(&c->run, "cancelled");
}

/* --- messages of brigd --- */

static void run_on_started(void *owner, int fd[RUN_STREAMS])
{
	struct foreground_run *c    = owner;
	int                    size = fcntl(fd[RUN_STDIN], F_GETPIPE_SZ);

	c->stdin_to  = fd_take(&fd[RUN_STDIN]);
	c->narrow_of = size > 0 && fcntl(c->stdin_to, F_SETPIPE_SZ, 1) > 0 ? size : 0;
	interrupt_arm(c->server.sock, c->run.id, c->request->session);
}

/* Tells a user at a terminal why nothing happens. */
void foreground_run_on_waiting(void *owner, const char *why)
{
	const struct foreground_run *c = owner;
	char                         plain[200];

	interrupt_arm(c->server.sock, c->run.id, false);
	if (!isatty(STDERR_FILENO))
		return;
	snprintf(plain, sizeof plain, "%s", why);
	text_make_plain(plain);
	fprintf(stderr, "brig: waiting (%s); Ctrl-C gives up\n", plain);
}

/* If a signal came before the session was open, brig will not print its name: it cancels the session, and waits for the end. */
static void run_on_session_opened(void *owner, const json_t *event)
{
	struct foreground_run *c = owner;

	if (interrupt_caught())
		interrupt_arm(c->server.sock, json_string_value(json_object_get(event, "session")), false);
	else
		c->opened = json_incref((json_t *)event);
}

static void run_on_ended(void *owner, const json_t *event)
{
	((struct foreground_run *)owner)->ended = json_incref((json_t *)event);
}

void foreground_run_on_refused(void *owner, const json_t *answer)
{
	((struct foreground_run *)owner)->refused = json_incref((json_t *)answer);
}

/* True if systemd failed to start the service: then the request was never read. */
static bool set_service_failure(struct foreground_run *c)
{
	char why[360];

	if (c->run.state != RUN_WAITS || !brigd_read_failure(&c->server, why, sizeof why))
		return false;
	c->sent = false;
	err_set(&c->lost, ERR_MISSING, "%.60s: the service cannot start: %s", c->server.name, why);
	return true;
}

/* The connection ended without an answer. This is not a refusal: the program may have started. */
static void run_on_connection_closed(struct foreground_run *c)
{
	char how[48] = "";
	int  status;

	interrupt_disarm();
	if (set_service_failure(c))
		return;
	status = brigd_close(&c->server); /* of a private brigd; 0 for a service */
	if (WIFSIGNALED(status))
		snprintf(how, sizeof how, " (killed by SIG%s)", sigabbrev_np(WTERMSIG(status)) ? sigabbrev_np(WTERMSIG(status)) : "?");
	else if (WEXITSTATUS(status))
		snprintf(how, sizeof how, " (exit status %d)", WEXITSTATUS(status));
	err_set(&c->lost, ERR_SETUP, "brigd was killed, or could not report how the run ended: %.200s%s", c->server.name, how);
}

void foreground_run_on_lost(void *owner, const struct err *why)
{
	struct foreground_run *c = owner;

	if (!why)
		run_on_connection_closed(c);
	else if (!set_service_failure(c))
		c->lost = *why;
}

const struct run_events foreground_run_events = {
	.waiting = foreground_run_on_waiting,
	.started = run_on_started,
	.output  = run_on_output,
	.opened  = run_on_session_opened,
	.ended   = run_on_ended,
	.refused = foreground_run_on_refused,
	.lost    = foreground_run_on_lost,
};

/* --- the loop --- */

/* The stream's descriptor for poll(), or -1 during a rest (stream_rest.h), which *wait_ms then limits. */
static int fd_to_poll(const struct stream *stream, int *wait_ms)
{
	if (stream->fd < 0 || stream->rests_ms == 0 || stream->rests_ms <= clock_ms(CLOCK_MONOTONIC))
		return stream->fd;
	*wait_ms = STREAM_REST_MS;
	return -1;
}

static void run_poll_once(struct foreground_run *c)
{
	bool          has_pending = stdin_pending_bytes(c) > 0;
	int           wait_ms     = -1;
	struct pollfd fds[]       = {
		{ c->server.sock, POLLIN, 0 },
		{ fd_to_poll(&c->run.out.stream, &wait_ms), POLLIN, 0 },
		{ fd_to_poll(&c->run.err.stream, &wait_ms), POLLIN, 0 },
		{ fd_to_poll(&c->run.report.stream, &wait_ms), POLLIN, 0 },
		{ has_pending || c->input_ended ? c->stdin_to : -1, POLLOUT, 0 },
		{ c->stdin_to >= 0 && !has_pending && !c->input_ended ? c->stdin_from : -1, POLLIN, 0 },
	};

	if (poll(fds, ARRAY_LEN(fds), wait_ms) < 0)
		return;
	if (fds[1].revents)
		run_pipe_read(&c->run.out);
	if (fds[2].revents)
		run_pipe_read(&c->run.err);
	if (fds[3].revents)
		run_pipe_read(&c->run.report);
	if (fds[4].revents && has_pending)
		stdin_write(c);
	else if (fds[4].revents)
		stdin_seek_back_unread(c);
	if (fds[5].revents)
		stdin_read(c);
	if (fds[0].revents)
		run_client_receive(&c->run);
}

/* A brigd that cannot serve sends its reason before it closes the connection: when the request cannot be sent, that is read. */
static void foreground_run_send_request(struct foreground_run *c)
{
	struct pollfd p = { .fd = c->server.sock, .events = POLLIN };
	struct err    failure;

	c->sent = run_client_start_request(&c->run, c->request->message, c->request->fd, c->request->fds, &c->lost) == 0;
	if (c->sent)
		return;
	failure = c->lost;
	if (poll(&p, 1, 0) > 0)
		run_client_receive(&c->run);
	if (!set_service_failure(c))
		c->lost = failure;
}

/* --- what began early --- */

static void stream_adopt_early(struct stream *s, const struct early_stream *early, uint64_t keep)
{
	s->fd     = early->fd;
	s->keep   = keep;
	s->seen   = early->seen;
	s->little = early->little;
	s->broken = early->broken;
	s->unread = early->unread;
	s->end    = early->end;
}

/* It may wait for a reader, so the signals must be let in before. */
static void stream_write_early_rest(struct stream *s, const struct early_stream *early)
{
	if (early->rest_len && file_write_all(s->to, early->rest, early->rest_len) < 0)
		s->broken = errno;
}

void foreground_run_adopt_early(struct foreground_run *c, const struct early *early)
{
	scoped_datagram   d   = DATAGRAM_NONE;
	struct run_client *run = &c->run;

	c->sent = early->sent;
	if (early->started) {
		run->state = RUN_RUNS;
		snprintf(run->id, sizeof run->id, "%s", early->run);
		stream_adopt_early(&run->out.stream, &early->out, early->keep);
		stream_adopt_early(&run->err.stream, &early->err, early->keep);
		interrupt_arm(c->server.sock, run->id, c->request->session);
	}
	if (early->masked)
		interrupt_restore_mask(early->mask);
	stream_write_early_rest(&run->out.stream, &early->out);
	stream_write_early_rest(&run->err.stream, &early->err);
	if (run->out.stream.broken || run->err.stream.broken)
		run_client_interrupt_or_cancel(run, "cancelled");
	errno = early->lost;
	if (errno)
		err_sys(&c->lost, "brigd cannot be heard");
	else if (early->len && datagram_parse(&d, early->text, early->len, early->fd, early->fds, &c->lost) == 0)
		run_client_handle(run, &d);
}

/*
 * Returns when brigd has cleaned up and the last byte is read. Every process of
 * the cell is dead by then. The pipes are drained without waiting for end of
 * file: a program may have sent its end of one to a process outside, through a
 * socket that --ro shows.
 */
void foreground_run_wait(struct foreground_run *c)
{
	if (!c->sent && c->lost.kind == ERR_NONE && run_files_start(&c->moving, c->request, &c->lost) == 0)
		foreground_run_send_request(c);
	run_files_close_peer(c->request);
	while (!c->opened && !c->ended && !c->refused && c->lost.kind == ERR_NONE)
		run_poll_once(c);
	run_client_drain(&c->run);
	stdin_seek_back_unread(c);
	interrupt_disarm();
	fd_closep(&c->server.sock); /* a private brigd ends while we print */
	c->files = run_files_finish(&c->moving);
}
