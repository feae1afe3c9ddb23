#define _GNU_SOURCE
#include "tool_call.h"

#include "tool_schema.h"
#include "clean.h"
#include "exact.h"
#include "tool_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRESS_MS = 100, ARGUMENTS_SHOWN = 1000 };

/* --- its end --- */

static void release_call_waits(struct tool_call *c)
{
	server_wait_leave(&c->wait);
	rpc_ask_cancel(&c->ask);
	loop_timer_clear(c->all->broker->loop, &c->expires);
	c->consent = 0;
	c->is_over = true;
}

static void audit_call_end(struct tool_call *c, enum tool_outcome outcome, const json_t *body)
{
	struct broker *b     = c->all->broker;
	size_t         bytes = outcome == TOOL_OUTCOME_ok ? json_dumpb(json_object_get(body, "result"), NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY) : 0;

	if (c->is_audited)
		tool_audit_write_end(&b->audit, c->all->run, c->number, c->name, tool_outcome_name(outcome), loop_now_ms() - c->began_ms, bytes);
	c->is_audited = false;
}

static void tool_call_audit_and_report_end(struct tool_call *c, enum tool_outcome outcome, json_t *body)
{
	release_call_waits(c);
	audit_call_end(c, outcome, body);
	c->all->ended(c->all->owner, c, body, outcome);
}

/* The call is not sent to the server; the audit gets the reason instead. */
static void tool_call_refuse(struct tool_call *c, enum tool_outcome outcome, const char *why)
{
	if (!c->is_audited)
		tool_audit_write_call(&c->all->broker->audit, c->all->run, c->number, c->name, outcome == TOOL_OUTCOME_denied ? "deny" : "none", why, c->args, c->digest);
	tool_call_audit_and_report_end(c, outcome, bridge_error_body(outcome, "%s", why));
}

void tool_call_drop(struct tool_call *c)
{
	if (c->is_over)
		return;
	release_call_waits(c);
	audit_call_end(c, TOOL_OUTCOME_cancelled, NULL);
}

void tool_call_cancel(struct tool_call *c)
{
	if (!c->is_over)
		tool_call_audit_and_report_end(c, TOOL_OUTCOME_cancelled, bridge_error_body(TOOL_OUTCOME_cancelled, "the program has cancelled it"));
}

void tool_call_done(struct tool_call *c)
{
	free(c->name);
	free(c->own);
	free(c->tool);
	free(c->question);
	json_decref(c->args);
	json_decref(c->definition);
}

/* --- the server answers --- */

static const char *text_or(const char *text, const char *other)
{
	return text ? text : other;
}

static void end_call_by_result(struct tool_call *c, const json_t *result)
{
	char   *error = NULL;
	json_t *value = tool_result_to_value(result, &error);

	tool_server_reset_failures(c->server);
	if (value)
		tool_call_audit_and_report_end(c, TOOL_OUTCOME_ok, bridge_answer_body("result", value));
	else
		tool_call_audit_and_report_end(c, TOOL_OUTCOME_tool, bridge_error_body(TOOL_OUTCOME_tool, "%s", text_or(error, "out of memory")));
	free(error);
}

static void end_call_by_error(struct tool_call *c, const json_t *error)
{
	json_int_t  code = json_integer_value(json_object_get(error, "code"));
	const char *reply = text_or(json_string_value(json_object_get(error, "message")), "");
	size_t      n    = strlen(reply);
	char       *text = clean_text(reply, clean_cut_length(reply, n, TOOL_ERROR_MAX), false, &n);

	if (code == RPC_NO_ANSWER)
		tool_call_audit_and_report_end(c, TOOL_OUTCOME_lost, bridge_error_body(TOOL_OUTCOME_lost, "%s; whether it was done is not known", text_or(text, "")));
	else if (code == RPC_TOO_LARGE)
		tool_call_audit_and_report_end(c, TOOL_OUTCOME_limit, bridge_error_body(TOOL_OUTCOME_limit, "%s", text_or(text, "")));
	else
		tool_call_audit_and_report_end(c, TOOL_OUTCOME_tool, bridge_error_body(TOOL_OUTCOME_tool, "%s (error %" JSON_INTEGER_FORMAT " of the server)", text_or(text, ""), code));
	free(text);
}

static void on_tool_server_response(void *owner, enum rpc_end how, const json_t *reply, const char *why)
{
	struct tool_call *c = owner;

	switch (how) {
	case RPC_END_RESULT:
		end_call_by_result(c, reply);
		return;
	case RPC_END_ERROR:
		end_call_by_error(c, reply);
		return;
	case RPC_END_TIMEOUT:
		tool_call_audit_and_report_end(c, TOOL_OUTCOME_timeout, bridge_error_body(TOOL_OUTCOME_timeout, "no answer in %" PRIu64 " ms (--tool-timeout)", c->all->broker->settings.call_ms));
		return;
	case RPC_END_LIMIT:
		tool_call_audit_and_report_end(c, TOOL_OUTCOME_limit, bridge_error_body(TOOL_OUTCOME_limit, "the server's answer cannot be taken: %s", why));
		return;
	case RPC_END_LOST:
		tool_call_audit_and_report_end(c, TOOL_OUTCOME_lost, bridge_error_body(TOOL_OUTCOME_lost, "%s; whether it was done is not known", why));
		return;
	}
}

static void on_server_progress(void *owner, const json_t *params)
{
	struct tool_call *c   = owner;
	int64_t           now = loop_now_ms();

	if (now - c->last_progress_ms < PROGRESS_MS || !json_is_number(json_object_get(params, "progress")))
		return;
	c->last_progress_ms = now;
	c->all->progress(c->all->owner, c, params);
}

static void send_call_to_server(struct tool_call *c)
{
	c->ask        = (struct rpc_ask){ .answered = on_tool_server_response, .progress = on_server_progress, .owner = c };
	c->is_audited = true;
	if (!tool_server_call(c->server, &c->ask, c->tool, json_incref(c->args), c->all->broker->settings.call_ms))
		tool_call_audit_and_report_end(c, TOOL_OUTCOME_lost, bridge_error_body(TOOL_OUTCOME_lost, "the server does not read what it is sent"));
}

static void audit_call_verdict(struct tool_call *c, const char *verdict, const char *why)
{
	tool_audit_write_call(&c->all->broker->audit, c->all->run, c->number, c->name, verdict, why, c->args, c->digest);
}

/* --- a person is asked --- */

/* Between question and answer the server may have ended, or changed the tool. */
static bool tool_is_unchanged(const struct tool_call *c)
{
	const struct catalog_tool *now = catalog_find_tool(&c->server->catalog, c->name);

	return now && json_equal(now->definition, c->definition);
}

static void send_allowed_call(struct tool_call *c, const char *why)
{
	if (c->all->is_gone(c->all->owner)) {
		tool_call_refuse(c, TOOL_OUTCOME_cancelled, "the program has ended");
	} else if (!tool_is_unchanged(c)) {
		tool_call_refuse(c, TOOL_OUTCOME_denied, "the tool has changed since it was asked for; call it again");
	} else if (c->server->state != TOOL_SERVER_READY) {
		tool_call_refuse(c, TOOL_OUTCOME_lost, "the server has ended since it was asked for");
	} else {
		audit_call_verdict(c, "allow", why);
		send_call_to_server(c);
	}
}

void tool_call_apply_consent(struct tool_call *c, enum consent_answer answer, const char *why)
{
	struct tool_calls *all = c->all;
	char               text[400];

	if (!c->consent || c->is_over)
		return;
	c->consent = 0;
	loop_timer_clear(all->broker->loop, &c->expires);
	switch (answer) {
	case CONSENT_RUN:
		json_object_set(all->granted, c->name, c->definition);
		send_allowed_call(c, "a person has allowed it for this run");
		return;
	case CONSENT_ONCE:
		send_allowed_call(c, "a person has allowed it once");
		return;
	case CONSENT_NO:
		json_object_set_new(all->refused, c->name, json_true());
		tool_call_refuse(c, TOOL_OUTCOME_denied, "a person was asked, and has not allowed it");
		return;
	case CONSENT_CANNOT:
		snprintf(text, sizeof text, "a person must be asked before, and %.150s; --allow-tools %.120s allows it without asking", why, c->own);
		tool_call_refuse(c, TOOL_OUTCOME_denied, text);
		return;
	}
}

static void on_consent_timeout(void *owner)
{
	tool_call_apply_consent(owner, CONSENT_CANNOT, "none has answered in time (--ask-timeout)");
}

/*
 * The names are plain text (catalog.c, server_entry.c). The arguments are the program's, as JSON in ASCII: no newline, and no
 * character that hides or reorders others.
 */
static char *consent_question(const struct tool_call *c, const char *why)
{
	size_t len  = 0;
	char  *args = json_dump_exact(c->args, JSON_COMPACT | JSON_ENSURE_ASCII, &len), *text = NULL, hidden[80] = "";

	if (len > ARGUMENTS_SHOWN) /* before the arguments: behind them it could be theirs, and is easily missed */
		snprintf(hidden, sizeof hidden, "; ONLY THE FIRST %d BYTES ARE SHOWN, %zu are not", ARGUMENTS_SHOWN, len - ARGUMENTS_SHOWN);
	if (args && asprintf(&text, "A program wants to call the tool %s: %s.\n\nIts arguments, as the program has written them (%zu bytes, sha256 %.16s%s):\n%.*s%s",
			     c->own, why, len, c->digest, hidden, ARGUMENTS_SHOWN, args, *hidden ? " ... (cut here)" : "") < 0)
		text = NULL;
	free(args);
	return text;
}

static void request_consent(struct tool_call *c, const char *why)
{
	struct broker *b = c->all->broker;

	if (json_object_get(c->all->refused, c->name)) {
		tool_call_refuse(c, TOOL_OUTCOME_denied, "a person has refused this tool to this run before");
		return;
	}
	if (json_equal(json_object_get(c->all->granted, c->name), c->definition)) {
		send_allowed_call(c, "a person has allowed it for this run");
		return;
	}
	if (c->all->asked++ >= QUESTIONS_MAX || !(c->question = consent_question(c, why))) {
		tool_call_refuse(c, TOOL_OUTCOME_denied, "this run has asked for more than a person can answer");
		return;
	}
	audit_call_verdict(c, "ask", why);
	c->consent = ++b->consents;
	c->expires = (struct loop_timer){ .due = on_consent_timeout, .owner = c };
	loop_timer_set(b->loop, &c->expires, (int64_t)b->settings.ask_ms);
	c->all->asks(c->all->owner, c);
}

/* --- from its name to the verdict --- */

static bool set_called_tool(struct tool_call *c, const struct catalog_tool *t)
{
	char *full = strdup(t->full);

	c->own        = strdup(t->own);
	c->tool       = strdup(t->name);
	c->definition = json_incref(t->definition);
	if (!full || !c->own || !c->tool) {
		free(full);
		return false;
	}
	free(c->name);
	c->name = full;
	return true;
}

static void judge_call(struct tool_call *c, const struct catalog_tool *t)
{
	char why[200], text[400];

	switch (tool_policy_judge(&c->all->broker->settings.policy, t, why, sizeof why)) {
	case TOOL_ALLOW:
		audit_call_verdict(c, "allow", why);
		send_call_to_server(c);
		return;
	case TOOL_ASK:
		request_consent(c, why);
		return;
	case TOOL_DENY:
		snprintf(text, sizeof text, "it is not allowed here (%s)", why);
		tool_call_refuse(c, TOOL_OUTCOME_denied, text);
		return;
	}
}

static void on_server_ready(void *owner, struct tool_server *s, const char *why)
{
	struct tool_call          *c = owner;
	const struct catalog_tool *t = why ? NULL : catalog_find_tool(&s->catalog, c->name);
	struct err                 e;

	c->server = s;
	if (why)
		tool_call_refuse(c, TOOL_OUTCOME_lost, why);
	else if (!t)
		tool_call_refuse(c, TOOL_OUTCOME_not_found, "there is no such tool; tools.search(\"words\") finds those that there are");
	else if (!set_called_tool(c, t))
		tool_call_refuse(c, TOOL_OUTCOME_limit, "out of memory");
	else if (argument_check(c->args, json_object_get(t->definition, "inputSchema"), &e) < 0)
		tool_call_refuse(c, TOOL_OUTCOME_bad_arguments, e.text);
	else
		judge_call(c, t);
}

void tool_call_start(struct tool_call *c, struct tool_calls *all, const char *name, const json_t *args)
{
	struct tool_server *s = broker_find_server(all->broker, name);

	*c = (struct tool_call){ .all = all, .number = ++all->broker->calls, .began_ms = loop_now_ms(), .args = json_incref((json_t *)args) };
	c->wait = (struct server_wait){ .over = on_server_ready, .owner = c };
	c->name = strndup(name, clean_cut_length(name, strlen(name), BRIDGE_NAME_MAX));
	tool_audit_digest_arguments(args, c->digest);
	if (!c->name || strlen(name) > BRIDGE_NAME_MAX || !s)
		tool_call_refuse(c, TOOL_OUTCOME_not_found, "there is no server of that name");
	else
		tool_server_await(s, &c->wait);
}
