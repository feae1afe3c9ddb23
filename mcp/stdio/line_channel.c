#include "line_channel.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define READ_AT_ONCE (64 * KIB)
#define TIMEOUT_MS   1500 /* for calls that came before end of file */
#define FLUSH_MS     300  /* for a client that reads the last answers slowly */

static struct line_channel *line_channel_of(struct channel *ch)
{
	return (struct line_channel *)ch;
}

/* --- the end --- */

static bool channel_has_calls(const struct line_channel *l)
{
	const struct call *c;

	TAILQ_FOREACH(c, &l->mcp->calls, link)
		if (c->channel == &l->channel)
			return true;
	return false;
}

/* Cancels nothing, because it is also called inside of answers. */
static void end_if_done(struct line_channel *l)
{
	if (l->out.broken || (l->over && !output_waits(&l->out) && !channel_has_calls(l)))
		l->mcp->ends = true;
}

static void on_end_deadline(void *owner)
{
	struct line_channel *l = owner;

	l->over = true;
	if (!channel_has_calls(l)) {
		l->mcp->ends = true;
		return;
	}
	calls_cancel_all(l->mcp, &l->channel);
	loop_timer_set(&l->mcp->loop, &l->deadline, FLUSH_MS);
	end_if_done(l);
}

static void set_end_deadline(struct line_channel *l)
{
	if (!l->deadline.set)
		loop_timer_set(&l->mcp->loop, &l->deadline, TIMEOUT_MS);
}

/* --- what the loop waits for --- */

static bool takes_requests(const struct line_channel *l)
{
	return !l->over && l->out.waiting <= OUTPUT_ENOUGH;
}

/* epoll does not take a plain file, which is always ready. */
static void wait_for_input(struct line_channel *l, uint32_t events)
{
	struct err e;

	if (l->reads_wait)
		loop_set_events(&l->mcp->loop, &l->reads, events);
	else if (!l->is_file)
		l->reads_wait = loop_add_events(&l->mcp->loop, &l->reads, events, &e) == 0;
	else if ((events & EPOLLIN) && !l->again.set)
		loop_timer_set(&l->mcp->loop, &l->again, 1);
}

/*
 * While no requests are taken, because the client does not read its answers, only the end of the input is waited for.
 * When even that is over the descriptor is removed: epoll reports EPOLLHUP for ever, even if no event is wanted.
 */
static void line_channel_update(struct line_channel *l)
{
	bool takes = takes_requests(l);

	if (!l->over && !l->ended && (takes || !l->hung_up)) {
		wait_for_input(l, takes ? EPOLLIN : EPOLLRDHUP);
	} else if (l->reads_wait) {
		loop_remove(&l->mcp->loop, &l->reads);
		l->reads_wait = false;
	}
	if (l->writes_wait)
		loop_set_events(&l->mcp->loop, &l->writes, output_waits(&l->out) ? EPOLLOUT : 0);
	end_if_done(l);
}

/* --- messages go out --- */

static void line_channel_send_message(struct line_channel *l, const json_t *message)
{
	size_t len  = 0;
	char  *text = rpc_dump_to_send(message, &len);

	if (text)
		output_add_line(&l->out, text, len);
	else
		l->out.broken = true;
	line_channel_update(l);
}

/* Progress and log messages are dropped if the client does not read. */
static void line_channel_send(struct channel *ch, struct call *c, const json_t *message)
{
	const char *method  = json_string_value(json_object_get(message, "method"));
	bool        is_news = method &&
		       (strcmp(method, "notifications/progress") == 0 || strcmp(method, "notifications/message") == 0);

	(void)c;
	if (!is_news || !output_waits(&line_channel_of(ch)->out))
		line_channel_send_message(line_channel_of(ch), message);
}

/* The call is still in the list, so end_if_done() must be called after it is gone. */
static void check_done_later(struct line_channel *l)
{
	if (l->over)
		loop_timer_set(&l->mcp->loop, &l->again, 0);
}

static void line_channel_answer(struct channel *ch, struct call *c, const json_t *message, int http_status)
{
	struct line_channel *l = line_channel_of(ch);

	(void)http_status;
	if (c->channel_data)
		batch_add_answer(c->channel_data, message);
	else
		line_channel_send_message(l, message);
	check_done_later(l);
}

static void line_channel_drop_call(struct channel *ch, struct call *c)
{
	if (c->channel_data)
		batch_drop_call(c->channel_data);
	check_done_later(line_channel_of(ch));
}

static const struct channel_ops ops = { .send   = line_channel_send,
					.answer = line_channel_answer,
					.gone   = line_channel_drop_call };

/* --- messages come in --- */

static void send_failure(struct line_channel *l, const json_t *id, struct rpc_error *e)
{
	scoped_json *message = rpc_failure(id, e);

	line_channel_send_message(l, message);
}

static void on_batch_answered(void *owner, const json_t *answers)
{
	if (answers)
		line_channel_send_message(owner, answers);
}

static void handle_line(struct line_channel *l, const char *line, size_t len)
{
	struct rpc_error e;
	json_t          *loaded = rpc_load_json(line, len, &e);
	scoped_rpc       message = { 0 };

	if (!loaded) {
		scoped_json *id = id_scan_find(line, len, true);

		send_failure(l, id, &e);
	} else if (batch_is_accepted(&l->channel, loaded)) {
		if (batch_dispatch(l->mcp, &l->channel, loaded, on_batch_answered, l, &e) < 0)
			send_failure(l, NULL, &e);
	} else if (rpc_parse_json(&message, loaded, &e) == 0) {
		dispatch_message(l->mcp, &l->channel, NULL, &message);
	} else if (message.kind == RPC_REQUEST) {
		send_failure(l, message.id, &e);
	}
}

/* At once if its id is known; the id may also come last, behind all that is too long. */
static bool refuse_too_long_line(struct line_channel *l, bool is_end)
{
	scoped_json     *id = id_scan_result(&l->lines.id, true);
	struct rpc_error e;

	if (!id && !is_end)
		return false;
	rpc_error_set(&e, RPC_PARSE_ERROR, "a line has more than %llu bytes", RPC_MAX);
	send_failure(l, id, &e);
	return true;
}

static void handle_next_line(struct line_channel *l, enum lines_next kind, const char *line, size_t len)
{
	switch (kind) {
	case LINES_NONE:
		return;
	case LINES_LINE:
		handle_line(l, line, len);
		return;
	case LINES_TOO_LONG:
		l->refused_early = refuse_too_long_line(l, false);
		return;
	case LINES_END_OF_TOO_LONG:
		if (!l->refused_early)
			(void)refuse_too_long_line(l, true);
		return;
	}
}

static void handle_read_lines(struct line_channel *l)
{
	const char     *line;
	size_t          len;
	enum lines_next kind;

	while (takes_requests(l) && (kind = lines_next(&l->lines, &line, &len)) != LINES_NONE)
		handle_next_line(l, kind, line, len);
	if (!l->ended || !takes_requests(l))
		return;
	while ((kind = lines_take_rest(&l->lines, &line, &len)) != LINES_NONE)
		handle_next_line(l, kind, line, len);
	l->over = true;
}

static void read_input(struct line_channel *l)
{
	char   *room = lines_reserve(&l->lines, READ_AT_ONCE);
	ssize_t n    = room ? stream_end_read(&l->in, room, READ_AT_ONCE) : 0;

	if (n > 0)
		lines_add_filled(&l->lines, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		l->ended = true;
	if (l->ended)
		set_end_deadline(l);
}

static void on_input_ready(void *owner)
{
	struct line_channel *l = owner;

	if (takes_requests(l)) {
		read_input(l);
		handle_read_lines(l);
	} else {
		l->hung_up = true;
		set_end_deadline(l);
	}
	line_channel_update(l);
}

static void continue_reading(void *owner)
{
	struct line_channel *l = owner;

	if (takes_requests(l) && !l->ended && !l->reads_wait)
		read_input(l);
	handle_read_lines(l);
	line_channel_update(l);
}

static void on_output_ready(void *owner)
{
	struct line_channel *l = owner;
	/* poll() without events reports errors only: the client has closed its end */
	struct pollfd hung_up = { .fd = l->out.end.fd };

	output_flush(&l->out);
	if (!output_waits(&l->out) && poll(&hung_up, 1, 0) > 0)
		l->out.broken = true;
	continue_reading(l);
}

/* --- open and close --- */

int line_channel_open(struct line_channel *l, struct mcp *m, int in, int out, struct err *e)
{
	*l = (struct line_channel){
		.channel  = { .ops = &ops, .legacy = REVISION_LEGACY_NEWEST, .principal = "stdio" },
		.mcp      = m,
		.lines    = { .max = RPC_MAX },
		.again    = { .due = continue_reading, .owner = l },
		.deadline = { .due = on_end_deadline, .owner = l },
	};
	stream_end_open(&l->in, in, false);
	output_open(&l->out, out);
	l->reads  = (struct loop_source){ .fd = l->in.fd, .ready = on_input_ready, .owner = l };
	l->writes = (struct loop_source){ .fd = l->out.end.fd, .ready = on_output_ready, .owner = l };
	l->writes_wait = loop_add_events(&m->loop, &l->writes, 0, e) == 0;
	if (!l->writes_wait && e->errnum != EPERM)
		return -1;
	l->reads_wait = loop_add(&m->loop, &l->reads, e) == 0;
	l->is_file    = !l->reads_wait;
	if (l->is_file && e->errnum != EPERM)
		return -1;
	line_channel_update(l);
	return 0;
}

void line_channel_request_stop(struct line_channel *l)
{
	l->over = true;
	set_end_deadline(l);
	line_channel_update(l);
}

void line_channel_close(struct line_channel *l)
{
	calls_cancel_all(l->mcp, &l->channel);
	if (l->reads_wait)
		loop_remove(&l->mcp->loop, &l->reads);
	if (l->writes_wait)
		loop_remove(&l->mcp->loop, &l->writes);
	loop_timer_clear(&l->mcp->loop, &l->again);
	loop_timer_clear(&l->mcp->loop, &l->deadline);
	lines_done(&l->lines);
	output_close(&l->out);
	stream_end_close(&l->in);
}
