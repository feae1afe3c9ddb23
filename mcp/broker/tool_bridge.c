#define _GNU_SOURCE
#include "tool_bridge.h"

#include "clock.h"
#include "fd.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { BURST_S = 2 }; /* so many seconds' worth of the rate limit may begin at once */
#define READ_AT_ONCE (64 * KIB)
#define WEIGHT_MAX   2000000 /* of the arguments under way together (wire_memory_weight()): about 128 MiB */

enum item_state { ITEM_NEW, ITEM_HELD, ITEM_UNDER_WAY, ITEM_LOOKS, ITEM_OVER };

/* One request of the program. */
struct bridge_item {
	TAILQ_ENTRY(bridge_item) link;
	struct tool_bridge      *bridge;
	int64_t                  id;
	enum bridge_op           op;
	enum item_state          state;
	char                    *text;   /* the text of a lookup; the name of a held call */
	char                    *args;   /* the arguments of a held call, as JSON */
	size_t                   max, weight;
	int64_t                  began_us;
	struct tool_call         call;
	struct gathering         gathering;
	struct loop_timer        later;  /* frees it when it is over and no caller uses it any more */
};

static int64_t monotonic_us(void)
{
	return (int64_t)(clock_ms(CLOCK_MONOTONIC) * 1000);
}

static struct bridge_item *bridge_item_of_call(struct tool_call *c)
{
	return (struct bridge_item *)((char *)c - offsetof(struct bridge_item, call));
}

/* --- the end of one --- */

static void bridge_item_free(void *owner)
{
	struct bridge_item *i = owner;

	loop_timer_clear(i->bridge->loop, &i->later);
	TAILQ_REMOVE(&i->bridge->items, i, link);
	tool_call_done(&i->call);
	free(i->text);
	free(i->args);
	free(i);
}

static void count_ended_call(struct bridge_item *i, enum tool_outcome outcome)
{
	struct tool_bridge *b = i->bridge;
	const char         *name;

	b->failed += outcome != TOOL_OUTCOME_ok && outcome != TOOL_OUTCOME_denied;
	b->denied += outcome == TOOL_OUTCOME_denied;
	if (!i->call.name) /* it never began: it was held, or beyond a limit */
		return;
	if (i->call.own) { /* the tool exists */
		name = json_object_size(b->names) < BRIDGE_NAMES_KEPT || json_object_get(b->names, i->call.name) ? i->call.name : "others";
		json_object_set_new(b->names, name, json_integer(json_integer_value(json_object_get(b->names, name)) + 1));
	}
	if (json_array_size(b->listed) < BRIDGE_LISTED)
		json_array_append_new(b->listed, json_pack("{ss sf ss}", "name", i->call.name, "ms", (double)(monotonic_us() - i->began_us) / 1000, "verdict",
							   outcome == TOOL_OUTCOME_tool ? "failed" : tool_outcome_name(outcome)));
	b->events->ended(b->owner, &i->call, tool_outcome_name(outcome));
}

/* A call may end inside of tool_call_start(), so its memory is freed in the next iteration of the loop. */
static void item_end_and_free_later(struct bridge_item *i, enum tool_outcome outcome)
{
	struct tool_bridge *b = i->bridge;

	if (i->op == BRIDGE_CALL)
		count_ended_call(i, outcome);
	if (i->state == ITEM_UNDER_WAY) {
		b->weight -= i->weight;
		if (--b->under_way == 0) {
			b->wait_us += monotonic_us() - b->busy_since_us;
			b->events->busy(b->owner, false);
		}
	}
	i->state = ITEM_OVER;
	i->later = (struct loop_timer){ .due = bridge_item_free, .owner = i };
	loop_timer_set(i->bridge->loop, &i->later, 0);
}

/* --- out --- */

static void update_bridge_io(struct tool_bridge *b)
{
	bool       wants = b->open && output_waits(&b->out), rests = b->out.waiting > OUTPUT_ENOUGH;
	struct err ignored;

	if (wants && !b->writes_wait)
		b->writes_wait = loop_add_events(b->loop, &b->writes, EPOLLOUT, &ignored) == 0;
	if (!wants && b->writes_wait) {
		loop_remove(b->loop, &b->writes);
		b->writes_wait = false;
	}
	if (b->open && rests != b->rests)
		loop_set_events(b->loop, &b->reads, rests ? 0 : EPOLLIN);
	b->rests = rests;
}

static void send_bridge_line(struct tool_bridge *b, char *line, size_t len)
{
	if (!b->open || !line) {
		free(line);
		return;
	}
	b->bytes_out += len + 1;
	output_add_line(&b->out, line, len);
	update_bridge_io(b);
}

/* The one answer of an id; takes body over. */
static void bridge_item_reply(struct bridge_item *i, json_t *body, enum tool_outcome outcome)
{
	struct tool_bridge *b   = i->bridge;
	size_t              len = 0;
	int64_t             id  = i->id;
	char               *line;

	if (b->bytes_out > BRIDGE_BYTES && outcome == TOOL_OUTCOME_ok) {
		json_decref(body);
		body    = bridge_error_body(outcome = TOOL_OUTCOME_limit, "this run was given 64 MiB by its tools, and that is the most");
	}
	line = bridge_dump_line(id, body, &len, &outcome);
	if (i->call.question)
		b->events->asks(b->owner); /* one question less */
	item_end_and_free_later(i, outcome);
	send_bridge_line(b, line, len);
}

/* --- calls --- */

static void start_held_calls(void *owner);

static void on_call_ended(void *owner, struct tool_call *c, json_t *body, enum tool_outcome outcome)
{
	bridge_item_reply(bridge_item_of_call(c), body, outcome);
	start_held_calls(owner);
}

static void on_call_progress(void *owner, struct tool_call *c, const json_t *params)
{
	struct tool_bridge *b = owner;
	static const char *const keys[] = { "progress", "total", "message" };
	json_t             *progress = json_object(), *line;
	size_t              len = 0;
	char               *text;

	for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
		json_t *value = json_object_get(params, keys[k]);

		if (k < 2 ? json_is_number(value) : json_is_string(value))
			json_object_set(progress, keys[k], value);
	}
	line = json_pack("{sI so}", "id", (json_int_t)bridge_item_of_call(c)->id, "progress", progress);
	text = rpc_dump(line, &len);
	json_decref(line);
	if (len < 16 * KIB && !output_waits(&b->out)) /* progress that cannot be sent now is dropped */
		send_bridge_line(b, text, len);
	else
		free(text);
}

static void on_consent_needed(void *owner, struct tool_call *c)
{
	struct tool_bridge *b = owner;

	(void)c;
	b->events->asks(b->owner);
}

/* Asks the kernel, which knows before the loop does: a person's consent may arrive after the program has ended and before the loop has seen it. */
static bool is_program_gone(void *owner)
{
	const struct tool_bridge *b  = owner;
	struct pollfd             on = { .fd = b->reads.fd, .events = POLLRDHUP };

	return !b->open || (poll(&on, 1, 0) > 0 && (on.revents & (POLLRDHUP | POLLHUP | POLLERR)));
}

static void bridge_item_start_call(struct bridge_item *i, const char *name, const json_t *args)
{
	struct tool_bridge *b = i->bridge;

	i->state    = ITEM_UNDER_WAY;
	i->began_us = monotonic_us();
	if (b->under_way++ == 0) {
		b->busy_since_us = i->began_us;
		b->events->busy(b->owner, true);
	}
	b->weight += i->weight;
	b->due -= 1;
	tool_call_start(&i->call, &b->calls, name, args);
}

static bool has_call_capacity(const struct tool_bridge *b, const struct bridge_item *i)
{
	return b->under_way < BRIDGE_UNDER_WAY && (!b->under_way || b->weight + i->weight <= WEIGHT_MAX);
}

/* The rate limit. A wait for it alone counts against the program's wall time, for no call is under way. */
static bool is_within_call_rate(struct tool_bridge *b)
{
	double  rate = (double)b->calls.broker->settings.calls_rate;
	int64_t now  = monotonic_us();

	if (rate == 0)
		return true;
	b->due += (double)(now - b->due_us) * rate / 1e6;
	if (b->due > rate * BURST_S)
		b->due = rate * BURST_S;
	b->due_us = now;
	if (b->due >= 1)
		return true;
	if (!b->pace.set)
		loop_timer_set(b->loop, &b->pace, 1 + (int64_t)((1 - b->due) * 1000 / rate));
	return false;
}

static struct bridge_item *first_held_call(const struct tool_bridge *b)
{
	struct bridge_item *i;

	TAILQ_FOREACH(i, &b->items, link)
		if (i->state == ITEM_HELD)
			break;
	return i;
}

/* Begins held calls, oldest first. A call that ends at once calls this function again, which must not recurse. */
static void start_held_calls(void *owner)
{
	struct tool_bridge *b = owner;
	struct bridge_item *i;

	if (b->goes_on)
		return;
	b->goes_on = true;
	while (b->open && (i = first_held_call(b)) && has_call_capacity(b, i) && is_within_call_rate(b)) {
		scoped_json *args = json_loads(i->args, JSON_ALLOW_NUL, NULL);

		bridge_item_start_call(i, i->text, args);
	}
	b->goes_on = false;
}

static void hold_call(struct bridge_item *i, const struct bridge_request *r)
{
	size_t len;

	i->text  = strdup(r->text);
	i->args  = rpc_dump(r->args, &len);
	i->state = ITEM_HELD;
	if (!i->text || !i->args)
		bridge_item_reply(i, bridge_error_body(TOOL_OUTCOME_limit, "out of memory"), TOOL_OUTCOME_limit);
}

static void handle_call_request(struct bridge_item *i, const struct bridge_request *r)
{
	struct tool_bridge *b    = i->bridge;
	uint64_t            most = b->calls.broker->settings.calls_max;

	if (b->n++ >= most)
		bridge_item_reply(i, bridge_error_body(TOOL_OUTCOME_limit, "a run may call tools %llu times (--tool-calls)", (unsigned long long)most), TOOL_OUTCOME_limit);
	else if (b->bytes_in > BRIDGE_BYTES)
		bridge_item_reply(i, bridge_error_body(TOOL_OUTCOME_limit, "this run has sent its tools 64 MiB, and that is the most"), TOOL_OUTCOME_limit);
	else if (first_held_call(b) || !has_call_capacity(b, i) || !is_within_call_rate(b))
		hold_call(i, r);
	else
		bridge_item_start_call(i, r->text, r->args);
}

/* --- looking up --- */

static void on_tools_gathered(void *owner)
{
	struct bridge_item *i      = owner;
	struct broker      *broker = i->bridge->calls.broker;
	const struct catalog_tool *t = i->op == BRIDGE_DESCRIBE ? broker_find_tool(broker, i->text) : NULL;

	switch (i->op) {
	case BRIDGE_FIND:
		bridge_item_reply(i, bridge_answer_body("tools", broker_search_tools(broker, i->text, i->max)), TOOL_OUTCOME_ok);
		return;
	case BRIDGE_DESCRIBE:
		bridge_item_reply(i, t ? bridge_answer_body("tool", catalog_tool_definition_json(t)) : bridge_error_body(TOOL_OUTCOME_not_found, "there is no such tool"), TOOL_OUTCOME_ok);
		return;
	case BRIDGE_NAMES:
		bridge_item_reply(i, bridge_answer_body("names", broker_tool_names(broker, i->text)), TOOL_OUTCOME_ok);
		return;
	case BRIDGE_CALL:
	case BRIDGE_CANCEL:
	case BRIDGE_OPS:
		return;
	}
}

static void bridge_item_start_lookup(struct bridge_item *i, const struct bridge_request *r)
{
	i->state     = ITEM_LOOKS;
	i->text      = strndup(r->text, BRIDGE_NAME_MAX);
	i->max       = r->max;
	i->gathering = (struct gathering){ .done = on_tools_gathered, .owner = i };
	if (i->bridge->lookups++ >= BRIDGE_LOOKUPS || !i->text)
		bridge_item_reply(i, bridge_error_body(TOOL_OUTCOME_limit, "a run may look for tools %d times", BRIDGE_LOOKUPS), TOOL_OUTCOME_limit);
	else
		broker_gather_tools(i->bridge->calls.broker, &i->gathering, r->op == BRIDGE_FIND ? "" : i->text);
}

/* --- in --- */

static struct bridge_item *bridge_item_find(const struct tool_bridge *b, int64_t id)
{
	struct bridge_item *i;

	TAILQ_FOREACH(i, &b->items, link)
		if (i->id == id && i->state != ITEM_OVER)
			break;
	return i;
}

static void bridge_item_cancel(struct bridge_item *i)
{
	switch (i->state) {
	case ITEM_HELD:
	case ITEM_LOOKS:
		gathering_leave(&i->gathering);
		bridge_item_reply(i, bridge_error_body(TOOL_OUTCOME_cancelled, "the program has cancelled it"), TOOL_OUTCOME_cancelled);
		return;
	case ITEM_UNDER_WAY:
		tool_call_cancel(&i->call);
		return;
	case ITEM_NEW:
	case ITEM_OVER:
		return;
	}
}

static void close_broken_bridge(struct tool_bridge *b, const char *why)
{
	snprintf(b->broken, sizeof b->broken, "%.190s", why);
	tool_bridge_close(b);
}

static void handle_bridge_request(struct tool_bridge *b, const struct bridge_request *r, size_t weight)
{
	struct bridge_item *i = bridge_item_find(b, r->id);

	if (r->op == BRIDGE_CANCEL) {
		if (i)
			bridge_item_cancel(i);
		return;
	}
	if (i) {
		close_broken_bridge(b, "an id that is in use");
		return;
	}
	i = calloc(1, sizeof *i);
	if (!i) {
		close_broken_bridge(b, "out of memory");
		return;
	}
	*i = (struct bridge_item){ .bridge = b, .id = r->id, .op = r->op, .weight = weight, .began_us = monotonic_us() };
	i->call.all     = &b->calls;
	i->call.is_over = true;
	TAILQ_INSERT_TAIL(&b->items, i, link);
	if (r->op == BRIDGE_CALL)
		handle_call_request(i, r);
	else
		bridge_item_start_lookup(i, r);
}

static void handle_bridge_lines(struct tool_bridge *b)
{
	const char     *line;
	size_t          len;
	enum lines_next kind;
	struct err      e;

	while (b->open && (kind = lines_next(&b->lines, &line, &len)) != LINES_NONE) {
		scoped_bridge_request r = { .op = BRIDGE_OPS };

		if (kind == LINES_TOO_LONG)
			close_broken_bridge(b, "a line has more than 1 MiB");
		if (kind != LINES_LINE)
			continue;
		if (bridge_request_parse(&r, line, len, &e) < 0)
			close_broken_bridge(b, e.text);
		else
			handle_bridge_request(b, &r, wire_memory_weight(line, len));
	}
}

static void on_readable(void *owner)
{
	struct tool_bridge *b    = owner;
	char               *room = lines_reserve(&b->lines, READ_AT_ONCE);
	ssize_t             n    = room ? recv(b->reads.fd, room, READ_AT_ONCE, MSG_DONTWAIT) : 0;

	if (n > 0) {
		b->bytes_in += (uint64_t)n;
		lines_add_filled(&b->lines, (size_t)n);
		handle_bridge_lines(b);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		tool_bridge_close(b);
	}
}

static void on_writable(void *owner)
{
	struct tool_bridge *b = owner;

	output_flush(&b->out);
	if (b->out.broken)
		tool_bridge_close(b);
	else
		update_bridge_io(b);
}

/* --- open and close --- */

int tool_bridge_open(struct tool_bridge *b, struct broker *broker, int fd, const char *run, const struct tool_bridge_events *events,
		     void *owner, struct err *e)
{
	*b = (struct tool_bridge){ .loop = broker->loop, .lines = { .max = BRIDGE_LINE_MAX }, .open = true, .names = json_object(), .listed = json_array(),
				  .events = events, .owner = owner };
	b->calls = (struct tool_calls){ .broker = broker, .run = run, .granted = json_object(), .refused = json_object(), .ended = on_call_ended,
					.progress = on_call_progress, .asks = on_consent_needed, .is_gone = is_program_gone, .owner = b };
	b->due    = (double)broker->settings.calls_rate * BURST_S;
	b->due_us = monotonic_us();
	b->pace   = (struct loop_timer){ .due = start_held_calls, .owner = b };
	TAILQ_INIT(&b->items);
	output_open(&b->out, fd);
	b->reads  = (struct loop_source){ .fd = fcntl(fd, F_DUPFD_CLOEXEC, 3), .ready = on_readable, .owner = b };
	b->writes = (struct loop_source){ .fd = fd, .ready = on_writable, .owner = b };
	if (b->reads.fd < 0)
		(void)err_sys(e, "a second descriptor for a bridge");
	else if (loop_add(b->loop, &b->reads, e) == 0)
		return 0;
	fd_closep(&b->reads.fd);
	tool_bridge_close(b);
	return -1;
}

/* Calls that are under way are dropped: their servers are asked to stop. */
void tool_bridge_close(struct tool_bridge *b)
{
	struct bridge_item *i;

	if (!b->open)
		return;
	b->open = false;
	loop_timer_clear(b->loop, &b->pace);
	if (b->reads.fd >= 0)
		loop_remove(b->loop, &b->reads);
	fd_closep(&b->reads.fd);
	if (b->writes_wait)
		loop_remove(b->loop, &b->writes);
	b->writes_wait = false;
	output_close(&b->out);
	TAILQ_FOREACH(i, &b->items, link) {
		if (i->state == ITEM_OVER)
			continue;
		gathering_leave(&i->gathering);
		tool_call_drop(&i->call);
		item_end_and_free_later(i, TOOL_OUTCOME_cancelled);
	}
}

void tool_bridge_done(struct tool_bridge *b)
{
	struct bridge_item *i;

	if (!b->loop)
		return;
	tool_bridge_close(b);
	while ((i = TAILQ_FIRST(&b->items)))
		bridge_item_free(i);
	lines_done(&b->lines);
	json_decref(b->names);
	json_decref(b->listed);
	json_decref(b->calls.granted);
	json_decref(b->calls.refused);
	*b = (struct tool_bridge){ 0 };
}

/* --- questions --- */

size_t tool_bridge_list_consents(const struct tool_bridge *b, struct consent *ret, size_t max)
{
	const struct bridge_item *i;
	size_t                    n = 0;

	if (!b->open)
		return 0;
	TAILQ_FOREACH(i, &b->items, link)
		if (n < max && i->state == ITEM_UNDER_WAY && i->call.consent)
			ret[n++] = (struct consent){ i->call.consent, i->call.question };
	return n;
}

static struct bridge_item *find_item_awaiting_consent(const struct tool_bridge *b, uint64_t number, const char *name)
{
	struct bridge_item *i;

	if (!b->open)
		return NULL;
	TAILQ_FOREACH(i, &b->items, link)
		if (i->state == ITEM_UNDER_WAY && i->call.consent && (name ? strcmp(i->call.name, name) == 0 : i->call.consent == number))
			break;
	return i;
}

void tool_bridge_set_consent(struct tool_bridge *b, uint64_t number, enum consent_answer answer_given, const char *why)
{
	struct bridge_item *i    = find_item_awaiting_consent(b, number, NULL);
	char               *name = i ? strdup(i->call.name) : NULL;

	if (i)
		tool_call_apply_consent(&i->call, answer_given, why);
	while (name && (answer_given == CONSENT_RUN || answer_given == CONSENT_NO) && (i = find_item_awaiting_consent(b, 0, name)))
		tool_call_apply_consent(&i->call, answer_given, why);
	free(name);
}

void tool_bridge_deny_at_second_unclear_consent(struct tool_bridge *b, uint64_t number)
{
	struct bridge_item *i = find_item_awaiting_consent(b, number, NULL);

	if (i && ++i->call.wrong > 1)
		tool_bridge_set_consent(b, number, CONSENT_NO, NULL);
}

/* --- what it came to --- */

json_t *tool_bridge_summary(const struct tool_bridge *b)
{
	return json_pack("{sI sI sI sO sf sI sO}", "n", (json_int_t)b->n, "failed", (json_int_t)b->failed, "denied", (json_int_t)b->denied, "names", b->names,
			 "wait_ms", (double)b->wait_us / 1000, "bytes", (json_int_t)(b->bytes_in + b->bytes_out), "calls", b->listed);
}
