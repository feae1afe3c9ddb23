#define _GNU_SOURCE
#include "rpc_client.h"

#include "fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define READ_AT_ONCE (64 * KIB)
#define WAITING_MAX  (16 * MIB) /* bytes that the server has not read */

/* --- out --- */

static void watch_output(struct rpc_client *c)
{
	bool        wants = output_waits(&c->out) && !c->out.broken;
	struct err  ignored;

	if (wants && !c->writes_wait)
		c->writes_wait = loop_add_events(c->loop, &c->writes, EPOLLOUT, &ignored) == 0;
	if (!wants && c->writes_wait) {
		loop_remove(c->loop, &c->writes);
		c->writes_wait = false;
	}
}

void rpc_client_send_line(struct rpc_client *c, char *line, size_t len)
{
	if (!line || !c->open || c->out.end.fd < 0) {
		free(line);
		return;
	}
	output_add_line(&c->out, line, len);
	watch_output(c);
}

/* Takes the message over. */
static void send_rpc_message(struct rpc_client *c, json_t *message)
{
	size_t len  = 0;
	char  *line = rpc_dump(message, &len);

	json_decref(message);
	rpc_client_send_line(c, line, len);
}

void rpc_client_notify(struct rpc_client *c, const char *method, json_t *params)
{
	send_rpc_message(c, rpc_notification(method, params));
}

static void on_writable(void *owner)
{
	struct rpc_client *c = owner;

	output_flush(&c->out);
	watch_output(c);
}

/* --- asking --- */

static void rpc_ask_detach(struct rpc_client *c, struct rpc_ask *a)
{
	TAILQ_REMOVE(&c->asks, a, link);
	loop_timer_clear(c->loop, &a->late);
	a->client = NULL;
}

void rpc_ask_cancel(struct rpc_ask *a)
{
	struct rpc_client *c = a->client;

	if (!c)
		return;
	rpc_ask_detach(c, a);
	rpc_client_notify(c, "notifications/cancelled", json_pack("{sI}", "requestId", (json_int_t)a->id));
}

static void rpc_ask_complete(struct rpc_client *c, struct rpc_ask *a, enum rpc_end end, const json_t *reply, const char *why)
{
	rpc_ask_detach(c, a);
	a->answered(a->owner, end, reply, why);
}

static void rpc_ask_on_timeout(void *owner)
{
	struct rpc_ask *a = owner;

	rpc_ask_cancel(a);
	a->answered(a->owner, RPC_END_TIMEOUT, NULL, "it has not answered in time");
}

bool rpc_client_send_request(struct rpc_client *c, struct rpc_ask *a, const char *method, json_t *params, uint64_t ms)
{
	json_t *id;

	if (c->out.waiting > WAITING_MAX) {
		json_decref(params);
		return false;
	}
	a->client = c;
	a->id     = ++c->id;
	a->late   = (struct loop_timer){ .due = rpc_ask_on_timeout, .owner = a };
	if (a->progress) {
		json_t *meta = json_object_get(params, "_meta");

		if (!meta)
			json_object_set_new(params, "_meta", meta = json_object());
		json_object_set_new(meta, "progressToken", json_integer(a->id));
	}
	TAILQ_INSERT_TAIL(&c->asks, a, link);
	if (ms)
		loop_timer_set(c->loop, &a->late, (int64_t)ms);
	id = json_integer(a->id);
	send_rpc_message(c, rpc_request(id, method, params));
	json_decref(id);
	return true;
}

static struct rpc_ask *find_ask(const struct rpc_client *c, const json_t *id)
{
	struct rpc_ask *a;

	TAILQ_FOREACH(a, &c->asks, link)
		if (json_is_integer(id) && json_integer_value(id) == a->id)
			break;
	return a;
}

/* A callback may forget other requests, so each search begins at the first one; requests that callbacks have made do not end. */
static void complete_all_asks(struct rpc_client *c, enum rpc_end end, const char *why, bool slow_too)
{
	int64_t         last = c->id;
	struct rpc_ask *a;

	do {
		TAILQ_FOREACH(a, &c->asks, link)
			if (a->id <= last && (slow_too || !a->slow))
				break;
		if (a)
			rpc_ask_complete(c, a, end, NULL, why);
	} while (a);
}

/* --- in --- */

/* A result is an object in this protocol, an error has a code and a text. */
static void handle_response(struct rpc_client *c, const struct rpc_message *m)
{
	struct rpc_ask *a = find_ask(c, m->id);

	if (!a)
		return;
	if (json_is_object(m->result))
		rpc_ask_complete(c, a, RPC_END_RESULT, m->result, NULL);
	else if (json_is_string(json_object_get(m->error, "message")))
		rpc_ask_complete(c, a, RPC_END_ERROR, m->error, NULL);
	else
		rpc_ask_complete(c, a, RPC_END_LIMIT, NULL, "its answer is not valid JSON-RPC");
}

static void reply_to_server_request(struct rpc_client *c, const struct rpc_message *m)
{
	struct rpc_error e;

	if (strcmp(m->method, "ping") == 0) {
		send_rpc_message(c, rpc_result(m->id, json_object()));
		return;
	}
	rpc_error_set(&e, RPC_METHOD_NOT_FOUND, "this client answers no requests");
	send_rpc_message(c, rpc_failure(m->id, &e));
}

static void handle_notification(struct rpc_client *c, const struct rpc_message *m)
{
	struct rpc_ask *a;

	if (strcmp(m->method, "notifications/progress") != 0) {
		c->events->notified(c->owner, m);
		return;
	}
	a = find_ask(c, json_object_get(m->params, "progressToken"));
	if (a && a->progress)
		a->progress(a->owner, m->params);
}

static void handle_rpc_message(struct rpc_client *c, json_t *source, const char *line, size_t len)
{
	struct rpc_error   e;
	struct rpc_message m;

	if (rpc_parse_json(&m, source, &e) < 0)
		c->events->noise(c->owner, line, len);
	else if (m.kind == RPC_RESPONSE)
		handle_response(c, &m);
	else if (m.kind == RPC_REQUEST)
		reply_to_server_request(c, &m);
	else
		handle_notification(c, &m);
	rpc_message_done(&m);
}

/*
 * The open request that an unreadable line seems to answer: its caller would wait for its time-out otherwise. A wrong guess
 * ends no more than another request to the same server.
 */
static struct rpc_ask *guess_answered_ask(const struct rpc_client *c, const char *line, size_t len)
{
	json_t         *id = id_scan_find(line, len, false);
	struct rpc_ask *a  = find_ask(c, id);

	json_decref(id);
	return a;
}

static void handle_rpc_line(struct rpc_client *c, const char *line, size_t len)
{
	struct rpc_error e      = { 0 };
	json_t          *source = *line == '{' || *line == '[' ? rpc_load_json(line, len, &e) : NULL;
	size_t           i;
	json_t          *one;
	struct rpc_ask  *a;

	if (!source) {
		if (*line == '{' && (a = guess_answered_ask(c, line, len)))
			rpc_ask_complete(c, a, RPC_END_LIMIT, NULL, e.text);
		else
			c->events->noise(c->owner, line, len);
		return;
	}
	if (!json_is_array(source)) {
		handle_rpc_message(c, source, line, len);
		return;
	}
	for (i = 0; c->open && (one = json_array_get(source, i)); i++) /* a batch, of 2025-03-26; a callback may close the client, and free the line */
		handle_rpc_message(c, json_incref(one), line, len);
	json_decref(source);
}

static void handle_buffered_lines(struct rpc_client *c)
{
	const char     *line;
	size_t          len;
	enum lines_next kind;

	while (c->open && (kind = lines_next(&c->lines, &line, &len)) != LINES_NONE) {
		if (kind == LINES_LINE)
			handle_rpc_line(c, line, len);
		else if (kind == LINES_TOO_LONG)
			complete_all_asks(c, RPC_END_LIMIT, "it has sent more than 4 MiB in one message", false);
	}
}

static void on_readable(void *owner)
{
	struct rpc_client *c    = owner;
	char              *room = lines_reserve(&c->lines, READ_AT_ONCE);
	ssize_t            n    = room ? read(c->reads.fd, room, READ_AT_ONCE) : 0;

	if (n > 0) {
		lines_add_filled(&c->lines, (size_t)n);
		handle_buffered_lines(c);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		loop_remove(c->loop, &c->reads);
		c->ended = true;
		c->events->ended(c->owner);
	}
}

void rpc_client_drain(struct rpc_client *c)
{
	size_t left = 4 * RPC_MAX; /* a child that the server has left behind may still write */

	while (c->open && !c->ended && left) {
		char   *room = lines_reserve(&c->lines, READ_AT_ONCE);
		ssize_t n    = room ? read(c->reads.fd, room, READ_AT_ONCE) : 0;

		if (n <= 0)
			return;
		lines_add_filled(&c->lines, (size_t)n);
		left -= (size_t)n < left ? (size_t)n : left;
		handle_buffered_lines(c);
	}
}

/* --- open and close --- */

int rpc_client_open(struct rpc_client *c, struct loop *loop, int in, int out, const struct rpc_client_events *events, void *owner, struct err *e)
{
	*c = (struct rpc_client){ .loop = loop, .events = events, .owner = owner, .lines = { .max = RPC_MAX }, .open = true };
	TAILQ_INIT(&c->asks);
	output_open(&c->out, out);
	c->reads  = (struct loop_source){ .fd = in, .ready = on_readable, .owner = c };
	c->writes = (struct loop_source){ .fd = c->out.end.fd, .ready = on_writable, .owner = c };
	if (loop_add(loop, &c->reads, e) == 0)
		return 0;
	c->ended = true;
	rpc_client_close(c, e->text);
	return -1;
}

void rpc_client_hang_up(struct rpc_client *c)
{
	if (!c->open)
		return;
	if (c->writes_wait)
		loop_remove(c->loop, &c->writes);
	c->writes_wait = false;
	output_close(&c->out);
	c->out.broken = true;
}

void rpc_client_close(struct rpc_client *c, const char *why)
{
	if (!c->open)
		return;
	rpc_client_hang_up(c);
	if (!c->ended)
		loop_remove(c->loop, &c->reads);
	c->open = false;
	fd_closep(&c->reads.fd);
	lines_done(&c->lines);
	complete_all_asks(c, RPC_END_LOST, why, true);
}
