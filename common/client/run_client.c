#include "run_client.h"

#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { INTERRUPT_MS = 2 * 1000 }; /* as brigd waits at a timeout */

static const char *event_get_text(const json_t *event, const char *key)
{
	return json_string_value(json_object_get(event, key));
}

static uint64_t event_get_number(const json_t *event, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(event, key));
}

/* --- requests --- */

json_t *cancel_request_to_json(const char *run, const char *reason)
{
	return json_pack("{ss ss ss*}", "op", "cancel", "run", run, "reason", reason);
}

void run_client_send(struct run_client *c, json_t *message)
{
	struct err ignored; /* a closed connection is noticed when it is read */

	if (c->link) {
		brigd_link_send(c->link, message);
		return;
	}
	(void)!datagram_send(c->sock, message, NULL, 0, &ignored);
	json_decref(message);
}

static void run_send_cancel(void *owner)
{
	struct run_client *c = owner;

	run_client_send(c, cancel_request_to_json(c->id, c->cancelled));
}

static void run_send_interrupt_or_cancel(struct run_client *c)
{
	if (!c->interrupts) {
		run_send_cancel(c);
	} else if (!c->kill_timer.set) {
		run_client_send(c, json_pack("{ss ss}", "op", "interrupt", "run", c->id));
		loop_timer_set(c->loop, &c->kill_timer, INTERRUPT_MS);
	}
}

/* Once: output that is read until the program is dead would cancel again and again. */
void run_client_interrupt_or_cancel(struct run_client *c, const char *reason)
{
	if (c->cancelled || c->state == RUN_OVER)
		return;
	c->cancelled = reason;
	if (*c->id)
		run_send_interrupt_or_cancel(c);
}

bool run_client_is_sent(const struct run_client *c)
{
	return c->question.tag && c->question.state != QUESTION_QUEUED;
}

/* --- pipes --- */

static void pipe_close(struct run_pipe *p)
{
	if (p->source.fd >= 0) {
		loop_timer_clear(p->run->loop, &p->rest);
		loop_remove(p->run->loop, &p->source);
		p->source.fd = -1;
	}
	fd_closep(&p->stream.fd);
}

void run_pipe_read(struct run_pipe *p)
{
	struct run_client *c = p->run;

	if (stream_read(&p->stream) == STREAM_FLOOD && !c->cancelled) {
		if (p != &c->report) {
			snprintf(c->limit, sizeof c->limit, "output_bytes");
			c->limit_value = p->stream.keep;
		}
		run_client_interrupt_or_cancel(c, "output_limit");
	}
	if (c->events->output)
		c->events->output(c->owner, p);
}

static void pipe_on_readable(void *owner)
{
	struct run_pipe *p = owner;

	run_pipe_read(p);
	if (p->stream.ended)
		pipe_close(p);
	else if (stream_rests(p->stream.little)) {
		loop_set_events(p->run->loop, &p->source, 0);
		loop_timer_set(p->run->loop, &p->rest, STREAM_REST_MS + 1); /* loop timers have whole milliseconds */
	}
}

static void pipe_on_pause_over(void *owner)
{
	struct run_pipe *p = owner;

	loop_set_events(p->run->loop, &p->source, EPOLLIN);
}

/* fd: -1: there is no such stream. When the kernel has no memory, only the output is lost. */
static void pipe_open(struct run_client *c, struct run_pipe *p, int fd, uint64_t keep)
{
	struct err ignored;

	p->stream.fd   = fd;
	p->stream.keep = keep;
	if (fd < 0 || !c->link)
		return;
	p->source = (struct loop_source){ .fd = fd, .ready = pipe_on_readable, .owner = p };
	p->rest   = (struct loop_timer){ .due = pipe_on_pause_over, .owner = p };
	if (loop_add(c->loop, &p->source, &ignored) == 0)
		return;
	p->source.fd = -1;
	fd_closep(&p->stream.fd);
}

static void input_close(struct run_client *c)
{
	if (c->input_source.fd >= 0)
		loop_remove(c->loop, &c->input_source);
	fd_closep(&c->input_source.fd);
}

static void input_on_writable(void *owner)
{
	struct run_client *c = owner;
	ssize_t            n = write(c->input_source.fd, c->input + c->input_at, c->input_len - c->input_at);

	if (n > 0)
		c->input_at += (size_t)n;
	if (c->input_at == c->input_len || (n < 0 && errno != EINTR && errno != EAGAIN))
		input_close(c); /* all is written, or the program has closed its end */
}

static void input_open(struct run_client *c, int fd)
{
	struct err ignored;

	c->input_source = (struct loop_source){ .fd = fd, .ready = input_on_writable, .owner = c };
	if (fd < 0 || !c->input_len || loop_add_events(c->loop, &c->input_source, EPOLLOUT, &ignored) < 0)
		fd_closep(&c->input_source.fd);
}

/* --- messages of brigd --- */

/*
 * Not blocking: the program can open its pipe again, read back the bytes that poll() has reported, and hold a writing
 * end open (stream.h). Streams with names that a later brigd may add stay in d, which closes them.
 */
static void adopt_streams(struct datagram *d, int fd[RUN_STREAMS])
{
	static const char *const ours[RUN_STREAMS] = { "stdout", "stderr", "result", "stdin", "tools" };
	const json_t            *names             = json_object_get(d->answer.source, "streams");

	for (size_t i = 0; i < json_array_size(names) && i < d->fds; i++)
		for (size_t k = 0; k < RUN_STREAMS; k++)
			if (fd[k] < 0 && strcmp(json_string_value(json_array_get(names, i)), ours[k]) == 0) {
				fcntl(d->fd[i], F_SETFL, O_NONBLOCK);
				fd[k] = fd_take(&d->fd[i]);
			}
}

static void handle_started(struct run_client *c, struct datagram *d)
{
	uint64_t   keep            = event_get_number(d->answer.source, "output_bytes");
	int        fd[RUN_STREAMS] = { -1, -1, -1, -1, -1 };
	struct err e;

	if (c->state != RUN_WAITS) {
		err_set(&e, ERR_PROTOCOL, "brigd broke the protocol: a second start");
		if (!c->link) /* else the other runs of this connection go on, and so does this one */
			c->events->lost(c->owner, &e);
		return;
	}
	adopt_streams(d, fd);
	c->state = RUN_RUNS;
	snprintf(c->id, sizeof c->id, "%s", event_get_text(d->answer.source, "run"));
	pipe_open(c, &c->out, fd_take(&fd[RUN_STDOUT]), keep);
	pipe_open(c, &c->err, fd_take(&fd[RUN_STDERR]), keep);
	pipe_open(c, &c->report, fd_take(&fd[RUN_RESULT]), PROGRAM_REPORT_MAX);
	if (c->events->started)
		c->events->started(c->owner, fd);
	if (c->link)
		input_open(c, fd_take(&fd[RUN_STDIN]));
	for (size_t k = 0; k < RUN_STREAMS; k++)
		fd_closep(&fd[k]);
	if (c->cancelled)
		run_send_interrupt_or_cancel(c);
}

static void handle_event(struct run_client *c, struct datagram *d)
{
	const json_t *event = d->answer.source;

	switch (d->answer.event) {
	case EVENT_waiting:
		if (c->state != RUN_WAITS)
			return;
		snprintf(c->id, sizeof c->id, "%s", event_get_text(event, "run"));
		if (c->cancelled)
			run_send_interrupt_or_cancel(c);
		if (c->events->waiting)
			c->events->waiting(c->owner, event_get_text(event, "why"));
		return;
	case EVENT_opened:
		if (c->events->opened)
			c->events->opened(c->owner, event);
		return;
	case EVENT_started:
		handle_started(c, d);
		return;
	case EVENT_limit:
		if (!json_is_true(json_object_get(event, "ends")))
			return;
		snprintf(c->limit, sizeof c->limit, "%s", event_get_text(event, "name"));
		c->limit_value = event_get_number(event, "value");
		return;
	case EVENT_ended:
		c->events->ended(c->owner, event);
		return;
	case EVENT_COUNT:
		return;
	}
}

void run_client_handle(struct run_client *c, struct datagram *d)
{
	switch (d->answer.kind) {
	case ANSWER_EVENT:
		handle_event(c, d);
		return;
	case ANSWER_ERROR:
		if (c->state != RUN_WAITS)
			return; /* a cancel was refused, which came too late */
		if (c->link)
			brigd_link_detach(c->link, &c->question);
		c->events->refused(c->owner, d->answer.source);
		return;
	case ANSWER_REPLY: /* to a cancel */
		return;
	}
}

void run_client_receive(struct run_client *c)
{
	scoped_datagram d = DATAGRAM_NONE;
	struct err      e;

	switch (datagram_receive(c->sock, &d, &e)) {
	case DATAGRAM_RECEIVED:
		run_client_handle(c, &d);
		return;
	case DATAGRAM_END:
		c->events->lost(c->owner, NULL);
		return;
	case DATAGRAM_BROKEN:
		c->events->lost(c->owner, &e);
		return;
	}
}

/* --- its life --- */

static void run_on_datagram(void *owner, struct datagram *d)
{
	run_client_handle(owner, d);
}

static void run_on_lost(void *owner, const struct err *why)
{
	struct run_client *c = owner;

	c->events->lost(c->owner, why);
}

void run_client_init(struct run_client *c, struct brigd_link *link, int sock, const struct run_events *events,
		     void *owner)
{
	const struct run_pipe unopened = {
		.stream = { .fd = -1, .lent = link != NULL, .to = -1 }, .run = c, .source = { .fd = -1 },
	};

	*c = (struct run_client){ .events = events, .owner = owner, .link = link, .sock = sock };
	if (link)
		c->loop = brigd_link_loop(link);
	c->input_source.fd          = -1;
	c->out = c->err = c->report = unopened;
	c->kill_timer               = (struct loop_timer){ .due = run_send_cancel, .owner = c };
}

int run_client_start_request(struct run_client *c, const json_t *message, const int *fds, size_t n, struct err *e)
{
	c->state = RUN_WAITS;
	if (!c->link)
		return datagram_send(c->sock, message, fds, n, e);
	brigd_link_detach(c->link, &c->question);
	c->question = (struct question){
		.answered = run_on_datagram,
		.lost     = run_on_lost,
		.owner    = c,
		.message  = message,
		.fds      = fds,
		.fds_len  = n,
		.repeated = c->is_once,
	};
	return brigd_link_ask(c->link, &c->question, e);
}

void run_client_close(struct run_client *c)
{
	c->state = RUN_OVER;
	pipe_close(&c->out);
	pipe_close(&c->err);
	pipe_close(&c->report);
	if (!c->link)
		return;
	brigd_link_detach(c->link, &c->question);
	input_close(c);
	loop_timer_clear(c->loop, &c->kill_timer);
}

void run_client_done(struct run_client *c)
{
	run_client_close(c);
	stream_done(&c->out.stream);
	stream_done(&c->err.stream);
	stream_done(&c->report.stream);
}

/* --- at the end --- */

void run_client_drain(struct run_client *c)
{
	stream_drain(&c->out.stream);
	stream_drain(&c->err.stream);
	stream_drain(&c->report.stream);
}

void run_client_add_byte_counts(const struct run_client *c, json_t *record)
{
	const struct stream *out = &c->out.stream, *err = &c->err.stream;

	json_object_set_new(record, "stdout_bytes", json_integer((json_int_t)out->seen));
	json_object_set_new(record, "stderr_bytes", json_integer((json_int_t)err->seen));
	json_object_set_new(record, "truncated", json_boolean(stream_is_truncated(out) || stream_is_truncated(err)));
}

json_t *run_client_report(const struct run_client *c, enum program_report_kind kind, struct err *e)
{
	const struct stream *s = &c->report.stream;

	if (s->unread)
		err_set(e, ERR_PROTOCOL, "it cannot be read: %s", strerror(s->broken));
	else if (stream_is_truncated(s))
		err_set(e, ERR_PROTOCOL, "it has more than %llu bytes", (unsigned long long)s->keep);
	else if (s->len == 0)
		err_set(e, ERR_PROTOCOL, "it is empty");
	else
		return program_report_parse(kind, s->data, s->len, e);
	return NULL;
}
