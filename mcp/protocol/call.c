#include "call.h"

#include "server_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Clients forget whose progress it is if they get it in the same read as the answer, so the answer is sent this much
 * later.
 */
#define APART_MS    3
#define PROGRESS_MS 250

/* --- begin and end --- */

static void call_send_answer(void *owner);

struct call *call_create(struct mcp *m, struct channel *ch, void *channel_data, const struct rpc_message *request,
			enum revision revision)
{
	struct call *c = calloc(1, sizeof *c);
	const json_t *token;

	if (!c)
		return NULL;
	*c = (struct call){
		.mcp = m, .channel = ch, .channel_data = channel_data, .revision = revision, .started_ms = loop_now_ms(),
	};
	c->id     = json_incref((json_t *)request->id);
	c->method = strdup(request->method ? request->method : "");
	c->params = request->params ? json_incref((json_t *)request->params) : json_object();
	token     = json_object_get(json_object_get(c->params, "_meta"), "progressToken");
	c->later  = (struct loop_timer){ .due = call_send_answer, .owner = c };
	if (token && !json_is_null(token))
		c->progress_token = json_incref((json_t *)token);
	TAILQ_INSERT_TAIL(&m->calls, c, link);
	return c;
}

static void call_free(struct call *c)
{
	TAILQ_REMOVE(&c->mcp->calls, c, link);
	loop_timer_clear(&c->mcp->loop, &c->later);
	json_decref(c->id);
	json_decref(c->params);
	json_decref(c->progress_token);
	json_decref(c->answer);
	free(c->method);
	free(c);
}

static void call_send_answer(void *owner)
{
	struct call *c = owner;

	c->channel->ops->answer(c->channel, c, c->answer, c->http_status);
	call_free(c);
}

static void call_end_with_message(struct call *c, json_t *message, int http_status)
{
	c->cancel      = NULL;
	c->work        = NULL;
	c->answer      = message;
	c->http_status = http_status;
	if (c->progress_at_ms && loop_now_ms() - c->progress_at_ms < APART_MS)
		loop_timer_set(&c->mcp->loop, &c->later, APART_MS);
	else
		call_send_answer(c);
}

void call_answer_result(struct call *c, json_t *result)
{
	json_t *meta = json_object_get(result, "_meta");

	if (revision_is_modern(c->revision)) {
		if (!json_object_get(result, "resultType"))
			json_object_set_new(result, "resultType", json_string("complete"));
		if (!meta)
			json_object_set_new(result, "_meta", meta = json_object());
		if (!json_object_get(meta, META_SERVER))
			json_object_set_new(meta, META_SERVER, server_info_json(c->revision));
	}
	call_end_with_message(c, rpc_result(c->id, result), 200);
}

static int http_status_of_error(const struct call *c, int code)
{
	switch (code) {
	case RPC_METHOD_NOT_FOUND:
		return revision_is_modern(c->revision) ? 404 : 200;
	case RPC_PARSE_ERROR:
	case RPC_INVALID_REQUEST:
	case RPC_HEADER_MISMATCH:
	case RPC_UNSUPPORTED_VERSION:
		return 400;
	default:
		return 200;
	}
}

void call_answer_failure_status(struct call *c, struct rpc_error *e, int http_status)
{
	call_end_with_message(c, rpc_failure(c->id, e), http_status);
}

void call_answer_failure(struct call *c, struct rpc_error *e)
{
	call_answer_failure_status(c, e, http_status_of_error(c, e->code));
}

static void call_stop_work(struct call *c)
{
	void (*cancel)(struct call *) = c->cancel;

	c->cancel = NULL;
	if (cancel)
		cancel(c);
}

void call_cancel_and_free(struct call *c)
{
	call_stop_work(c);
	if (c->channel->ops->gone)
		c->channel->ops->gone(c->channel, c);
	call_free(c);
}

/* --- while it lasts --- */

void call_notify(struct call *c, const char *method, json_t *params)
{
	json_t *message = rpc_notification(method, params);

	if (strcmp(method, "notifications/progress") == 0)
		c->progress_at_ms = loop_now_ms();
	c->channel->ops->send(c->channel, c, message);
	json_decref(message);
}

void call_send_progress(struct call *c, double progress, double total, const char *message)
{
	bool is_due =
		!c->progress_at_ms || (progress > c->progress && loop_now_ms() - c->progress_at_ms >= PROGRESS_MS);
	json_t *params;

	if (!c->progress_token || c->answer || !is_due)
		return;
	params = json_pack("{sOsf}", "progressToken", c->progress_token, "progress", progress);
	if (total > 0)
		json_object_set_new(params, "total", json_real(total));
	if (message && c->revision >= REVISION_2025_03_26)
		json_object_set_new(params, "message", json_string(message));
	c->progress = progress;
	call_notify(c, "notifications/progress", params);
}

/* --- all of them --- */

struct call *calls_find_by_id(struct mcp *m, const struct channel *ch, const json_t *id)
{
	struct call *c;

	TAILQ_FOREACH(c, &m->calls, link)
		if (c->channel == ch && id && json_equal(c->id, id))
			break;
	return c;
}

static bool is_legacy_call_of_session(const struct call *c, const struct channel *ch, const json_t *id)
{
	const struct channel *own = c->channel;

	return !revision_is_modern(c->revision) && own->session && ch->session &&
	       strcmp(own->session, ch->session) == 0 && strcmp(own->principal, ch->principal) == 0 &&
	       json_equal(c->id, id);
}

struct call *calls_find_to_cancel(struct mcp *m, const struct channel *ch, const json_t *id)
{
	struct call *found = calls_find_by_id(m, ch, id), *c;

	if (found || !id)
		return found;
	TAILQ_FOREACH(c, &m->calls, link) {
		if (!is_legacy_call_of_session(c, ch, id))
			continue;
		if (found) /* two clients use the same ids: it is not known which call is meant */
			return NULL;
		found = c;
	}
	return found;
}

/* Each search begins at the first call, as the end of one may end others. */
void calls_cancel_all(struct mcp *m, const struct channel *ch)
{
	struct call *c;

	do {
		TAILQ_FOREACH(c, &m->calls, link)
			if (c->channel == ch)
				break;
		if (c)
			call_cancel_and_free(c);
	} while (c);
}

/* Searches as calls_cancel_all() does. Calls that have an answer wait only for it to be sent. */
void calls_fail_all(struct mcp *m, const char *why)
{
	struct call     *c;
	struct rpc_error e;

	do {
		TAILQ_FOREACH(c, &m->calls, link)
			if (!c->answer)
				break;
		if (!c)
			return;
		call_stop_work(c);
		rpc_error_set(&e, RPC_INTERNAL, "%s", why);
		call_answer_failure(c, &e);
	} while (true);
}

size_t calls_count_of_method(const struct mcp *m, const char *method)
{
	const struct call *c;
	size_t             n = 0;

	TAILQ_FOREACH(c, &m->calls, link)
		n += strcmp(c->method, method) == 0;
	return n;
}
