#include "named_session.h"

#include "denial.h"
#include "fd.h"
#include "metrics.h"
#include "run_talk.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { END_MS_MAX = 1000 }; /* how long to wait for the end of a session that brigd closes */

/* --- its life --- */

static void on_pump(void *owner);
static void on_late_end(void *owner);
static void pump_soon(struct named_session *s);
static void on_answer(void *owner, struct datagram *d);
static void on_lost(void *owner, const struct err *why);

struct named_session *named_session_create(struct mcp *m, const char *owner, const char *name)
{
	struct named_session *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->mcp      = m;
	for (size_t i = 0; i < ARRAY_LEN(s->shown); i++)
		s->shown[i] = -1;
	s->pump     = (struct loop_timer){ .due = on_pump, .owner = s };
	s->late_end = (struct loop_timer){ .due = on_late_end, .owner = s };
	s->question = (struct question){ .answered = on_answer, .lost = on_lost, .owner = s };
	snprintf(s->owner, sizeof s->owner, "%s", owner);
	snprintf(s->name, sizeof s->name, "%s", name);
	TAILQ_INIT(&s->uses);
	TAILQ_INSERT_TAIL(&m->sessions->all, s, link);
	pump_soon(s); /* frees it if it is not used by then */
	return s;
}

static void close_shown(struct named_session *s)
{
	for (size_t i = 0; i < ARRAY_LEN(s->shown); i++)
		fd_closep(&s->shown[i]);
	s->question.fds_len = 0;
}

void named_session_destroy(struct named_session *s)
{
	brigd_link_forget(s->mcp->brigd_link, &s->question);
	loop_timer_clear(&s->mcp->loop, &s->pump);
	loop_timer_clear(&s->mcp->loop, &s->late_end);
	TAILQ_REMOVE(&s->mcp->sessions->all, s, link);
	close_shown(s);
	json_decref(s->asked);
	json_decref(s->message);
	free(s);
}

/* Frees it if it is not used, and no call must be told about its end. */
static void destroy_if_done(struct named_session *s)
{
	if (TAILQ_EMPTY(&s->uses) && s->state == SESSION_CLOSED && (s->is_over || !*s->lost))
		named_session_destroy(s);
}

static void pump_soon(struct named_session *s)
{
	loop_timer_set(&s->mcp->loop, &s->pump, 0);
}

/* --- its uses --- */

static void take_out(struct named_session *s, struct session_use *u)
{
	TAILQ_REMOVE(&s->uses, u, link);
	if (s->turn == u)
		s->turn = NULL;
	u->session  = NULL;
	u->is_ready = false;
}

static struct session_use *first_that_may(const struct named_session *s)
{
	struct session_use *u;

	TAILQ_FOREACH(u, &s->uses, link)
		if (!u->is_ready && !(u->is_call && s->turn))
			break;
	return u;
}

static struct session_use *first_that_waits(const struct named_session *s, bool calls_too)
{
	struct session_use *u;

	TAILQ_FOREACH(u, &s->uses, link)
		if (!u->is_ready && (calls_too || !u->is_call))
			break;
	return u;
}

static void refuse(struct named_session *s, const struct failure *f, bool calls_too)
{
	struct session_use *u;

	while ((u = first_that_waits(s, calls_too))) { /* searched again each time: refused() may remove other uses */
		take_out(s, u);
		u->refused(u->owner, f);
	}
}

/* ready() and refused() may leave and enter the session, and end it. */
static void on_pump(void *owner)
{
	struct named_session *s = owner;
	struct session_use   *u = s->state == SESSION_OPEN ? first_that_may(s) : NULL;

	if (s->state == SESSION_CLOSED)
		refuse(s, &s->failed, true);
	if (u) {
		pump_soon(s); /* for the next one */
		u->is_ready = true;
		if (u->is_call)
			s->turn = u;
		u->ready(u->owner);
	} else {
		destroy_if_done(s);
	}
}

/* --- its end --- */

static void fail(struct named_session *s, const char *code, const char *field, const char *text)
{
	s->state  = SESSION_CLOSED;
	s->failed = (struct failure){ .code = "" };
	snprintf(s->failed.code, sizeof s->failed.code, "%s", code);
	snprintf(s->failed.field, sizeof s->failed.field, "%s", field ? field : "");
	snprintf(s->failed.text, sizeof s->failed.text, "%s", text);
	pump_soon(s);
}

static void open_again(struct named_session *s);

/* reason: words, or "". */
static void lose(struct named_session *s, const char *reason)
{
	brigd_link_forget(s->mcp->brigd_link, &s->question);
	loop_timer_clear(&s->mcp->loop, &s->late_end);
	metrics_session_ended(s->mcp->metrics);
	*s->id     = 0;
	s->lost_ms = loop_now_ms();
	snprintf(s->lost, sizeof s->lost, "%s", *reason ? reason : "brigd has ended it");
	fail(s, "not_found", "session", s->lost);
	if (s->is_over)
		return;
	refuse(s, &s->failed, false);
	if (first_that_waits(s, true))
		open_again(s);
}

static void on_late_end(void *owner)
{
	lose(owner, "");
}

/* Its end is on its way, with the reason. */
void named_session_gone(struct named_session *s, const char *id)
{
	if (s->state != SESSION_OPEN || strcmp(s->id, id) != 0)
		return;
	s->state = SESSION_ENDS;
	loop_timer_set(&s->mcp->loop, &s->late_end, END_MS_MAX);
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* --- what brigd says --- */

static void send_close(struct named_session *s)
{
	brigd_link_send(s->mcp->brigd_link, json_pack("{ss ss}", "op", "close", "session", s->id));
}

static void on_waiting(void *owner, const char *run, const char *why)
{
	(void)owner, (void)run, (void)why;
}

static void on_opened(void *owner, const json_t *event)
{
	struct named_session *s = owner;

	if (s->state != SESSION_OPENS)
		return;
	s->state   = SESSION_OPEN;
	s->idle_ms = (uint64_t)json_integer_value(json_object_get(event, "idle_ms"));
	snprintf(s->id, sizeof s->id, "%s", json_string_value(json_object_get(event, "session")));
	metrics_session_opened(s->mcp->metrics);
	if (s->is_over)
		send_close(s);
	pump_soon(s);
}

static void on_started(void *owner, struct run_start *start)
{
	(void)owner, (void)start;
}

static void on_limit(void *owner, const char *name, uint64_t value)
{
	(void)owner, (void)name, (void)value;
}

/* A session that ends before it is open could not be built. */
static void on_ended(void *owner, const json_t *event)
{
	struct named_session *s      = owner;
	const json_t         *record = json_object_get(event, "record");
	const char           *words  = text_of(json_object_get(record, "error"), "message"), *why = text_of(record, "session_end");

	if (s->state == SESSION_OPEN || s->state == SESSION_ENDS) {
		lose(s, *why ? why : words);
		return;
	}
	brigd_link_forget(s->mcp->brigd_link, &s->question);
	fail(s, "unavailable", NULL, *words ? words : "The session could not be opened");
}

/* An error of brigd names a variable by its place in a list that the client never saw, "env[0]". Returns that variable, NAME=VALUE. */
static const char *variable_of(const struct named_session *s, const char *field)
{
	size_t i;

	return denial_item(field, "env", &i) ? json_string_value(json_array_get(json_object_get(s->message, "env"), i)) : NULL;
}

static void on_refused(void *owner, const json_t *answer)
{
	struct named_session *s     = owner;
	const json_t         *error = json_object_get(answer, "error");
	const char           *variable;
	char                  words[600];

	if (s->state != SESSION_OPENS)
		return;
	brigd_link_forget(s->mcp->brigd_link, &s->question);
	metrics_refused(s->mcp->metrics, text_of(error, "code"));
	if (strcmp(text_of(error, "code"), denial_code_name(DENIAL_unknown_request)) == 0) {
		fail(s, "denied", "session", "there are none here: the brigd that serves is of an older release; leave the argument out");
		return;
	}
	variable = variable_of(s, text_of(error, "field"));
	if (!variable) {
		fail(s, text_of(error, "code"), text_of(error, "field"), text_of(error, "message"));
		return;
	}
	snprintf(words, sizeof words, "%.*s: %s", (int)strcspn(variable, "="), variable, text_of(error, "message"));
	text_make_plain(words);
	fail(s, text_of(error, "code"), "env", words);
}

static void on_answer(void *owner, struct datagram *d)
{
	static const struct run_talk talk = {
		.waiting = on_waiting, .opened = on_opened, .started = on_started, .limit = on_limit, .ended = on_ended, .refused = on_refused
	};

	run_talk_handle(&talk, owner, d);
}

static void on_lost(void *owner, const struct err *why)
{
	struct named_session *s = owner;

	if (s->state == SESSION_OPEN || s->state == SESSION_ENDS)
		lose(s, "brigd was restarted");
	else if (s->state == SESSION_OPENS)
		fail(s, why->kind == ERR_MISSING ? "missing" : "lost", NULL, why->text);
}

/* --- its beginning --- */

static void open_again(struct named_session *s)
{
	struct err e;

	s->state             = SESSION_OPENS;
	s->question.message  = s->message;
	s->question.repeated = false;
	if (brigd_link_ask(s->mcp->brigd_link, &s->question, &e) < 0)
		fail(s, e.kind == ERR_MISSING ? "missing" : "unavailable", NULL, e.text);
}

void named_session_prepare(struct named_session *s, json_t *asked, json_t *message)
{
	struct err ignored;

	json_decref(s->asked);
	json_decref(s->message);
	s->asked   = asked;
	s->message = message;
	close_shown(s);
	if (shown_copy(&s->mcp->shown, s->shown, &ignored) < 0)
		return; /* it has none of them */
	shown_into(&s->mcp->shown, message);
	s->question.fds     = s->shown;
	s->question.fds_len = s->mcp->shown.n;
}

void named_session_enter(struct named_session *s, struct session_use *u)
{
	u->session  = s;
	u->is_ready = false;
	TAILQ_INSERT_TAIL(&s->uses, u, link);
	if (s->state == SESSION_CLOSED)
		open_again(s);
	pump_soon(s);
}

void named_session_leave(struct session_use *u)
{
	struct named_session *s = u->session;

	if (!s)
		return;
	take_out(s, u);
	pump_soon(s); /* the next use has its turn, or the session is freed */
}

void named_session_end(struct named_session *s)
{
	static const struct failure over = { .code = "cancelled", .field = "session", .text = "it was ended while this call waited for its turn" };

	s->is_over = true;
	refuse(s, &over, true);
	if (s->state == SESSION_OPEN)
		send_close(s);
	pump_soon(s);
}
