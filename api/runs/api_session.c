#include "api_session.h"

#include "profile_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *api_session_profile(const struct api_session *s)
{
	return *s->token->profile ? s->token->profile : s->api->settings->profile;
}

static void api_session_free(struct api_session *s)
{
	run_client_done(&s->client);
	json_decref(s->message);
	run_outcome_done(&s->failure);
	free(s);
}

/* Runs that wait for it are answered by the pump. */
static void api_session_set_over(struct api_session *s)
{
	if (s->state == API_SESSION_OVER)
		return;
	s->state = API_SESSION_OVER;
	TAILQ_REMOVE(&s->api->sessions, s, link);
	run_client_close(&s->client);
	loop_timer_set(&s->api->loop, &s->api->pump, 0);
	if (!s->uses)
		api_session_free(s);
}

void api_session_use(struct api_session *s)
{
	s->uses++;
}

void api_session_leave(struct api_session *s)
{
	if (--s->uses == 0 && s->state == API_SESSION_OVER)
		api_session_free(s);
}

void api_session_forget(struct api_session *s)
{
	TAILQ_REMOVE(&s->api->closing, s, link);
	s->is_closing = false;
	run_client_close(&s->client);
	api_session_leave(s);
}

static void api_session_send_close(struct api_session *s)
{
	run_client_send(&s->client, json_pack("{ss ss}", "op", "close", "session", s->id));
}

/* --- messages of brigd --- */

static void api_session_on_opened(void *owner, const json_t *event)
{
	struct api_session *s = owner;

	snprintf(s->id, sizeof s->id, "%s", json_string_value(json_object_get(event, "run")));
	if (s->is_closing) {
		api_session_send_close(s);
		return;
	}
	s->state = API_SESSION_OPEN;
	loop_timer_set(&s->api->loop, &s->api->pump, 0);
}

static void api_session_end(struct api_session *s)
{
	if (s->is_closing)
		api_session_forget(s);
	else
		api_session_set_over(s);
}

static void api_session_on_ended(void *owner, const json_t *event)
{
	struct api_session *s   = owner;
	const char         *why = json_string_value(json_object_get(json_object_get(event, "record"), "session_end"));

	run_outcome_fail(&s->failure, FAULT_BRIG, "session_ended", "the session has ended: %.300s", why ? why : "");
	api_session_end(s);
}

static void api_session_on_refused(void *owner, const json_t *answer)
{
	struct api_session *s = owner;

	run_outcome_set_denial(&s->failure, json_object_get(answer, "error"));
	api_session_end(s);
}

static void api_session_on_lost(void *owner, const struct err *why)
{
	struct api_session *s = owner;

	run_outcome_fail(&s->failure, FAULT_BRIG, "lost", "%s", why ? why->text : "brigd has closed the connection");
	api_session_end(s);
}

static const struct run_events events_of_session = {
	.opened  = api_session_on_opened,
	.ended   = api_session_on_ended,
	.refused = api_session_on_refused,
	.lost    = api_session_on_lost,
};

/* --- its life --- */

size_t api_session_count(const struct api *a, const struct api_token *t)
{
	const struct api_session *s;
	size_t                    n = 0;

	TAILQ_FOREACH(s, &a->sessions, link)
		n += !t || (s->token == t && *s->name);
	return n;
}

struct api_session *api_session_find(struct api *a, const struct api_token *t, const char *name)
{
	struct api_session *s;

	TAILQ_FOREACH(s, &a->sessions, link)
		if (s->token == t && strcmp(s->name, name) == 0)
			return s;
	return NULL;
}

struct api_session *api_session_open(struct api *a, struct api_token *t, const char *name, struct run_outcome *o)
{
	struct api_session *s = NULL;
	struct err          e;

	if (a->drains)
		run_outcome_fail(o, FAULT_BUSY, "stopping", "brig-api is stopping; try again in a while");
	else if (*name && api_session_count(a, t) >= a->settings->sessions)
		run_outcome_fail(o, FAULT_RATE, "sessions",
				 "this token has %llu sessions, and may have no more; end one",
				 (unsigned long long)a->settings->sessions);
	else if (!(s = calloc(1, sizeof *s)))
		run_outcome_fail(o, FAULT_BRIG, "memory", "out of memory");
	if (!s)
		return NULL;
	s->api   = a;
	s->token = t;
	s->uses  = 1;
	snprintf(s->name, sizeof s->name, "%s", name);
	s->message = json_pack("{ss ss sI}", "op", "open", "profile", api_session_profile(s), "wait_ms",
			       (json_int_t)a->settings->wait_ms);
	if (profile_info_has_feature(a->link, "principals"))
		json_object_set_new(s->message, "principal", json_string(t->name));
	run_client_init(&s->client, a->link, -1, &events_of_session, s);
	TAILQ_INSERT_TAIL(&a->sessions, s, link);
	if (run_client_start_request(&s->client, s->message, NULL, 0, &e) == 0)
		return s;
	run_outcome_fail(o, FAULT_BRIG, "unavailable", "%s", e.text);
	s->uses = 0;
	api_session_set_over(s);
	return NULL;
}

void api_session_close(struct api_session *s)
{
	if (s->state == API_SESSION_OVER)
		return;
	run_outcome_fail(&s->failure, FAULT_BRIG, "session_ended", "the session was closed");
	if (s->state == API_SESSION_OPEN) {
		api_session_send_close(s);
		api_session_set_over(s);
		return;
	}
	s->state      = API_SESSION_OVER;
	s->is_closing = true;
	s->uses++;
	TAILQ_REMOVE(&s->api->sessions, s, link);
	TAILQ_INSERT_TAIL(&s->api->closing, s, link);
	run_client_interrupt_or_cancel(&s->client, "cancelled");
	loop_timer_set(&s->api->loop, &s->api->pump, 0);
}
