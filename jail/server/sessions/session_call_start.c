/* session_call_start.c - how a call in a session begins: checks, its context, and what the session server is asked */
#define _GNU_SOURCE
#include "session.h"

#include "clock.h"
#include "fd.h"
#include "program_text.h"
#include "run_id.h"
#include "run_plan.h"
#include "sealed.h"
#include "served_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* --- limits --- */

static int call_lower_limits(struct session_call *call, const struct session *s, const json_t *asked,
			     struct denial *why)
{
	static const char *const may[] = { "wall_ms", "cpu_ms", "output_bytes", "tool_wait_ms", NULL };
	const char              *key;
	json_t                  *value;
	char                     field[64];

	json_object_foreach((json_t *)asked, key, value) {
		size_t i = 0;

		while (may[i] && strcmp(may[i], key) != 0)
			i++;
		snprintf(field, sizeof field, "limits.%.40s", key);
		if (!may[i])
			return deny(why, DENIAL_bad_field, field,
				    "belongs to the session: set it when the session is opened");
	}
	call->limits = s->limits;
	if (run_plan_apply_limits(&call->limits, s->run->profile, asked, why) < 0)
		return -1;
	/*
	 * A call at a terminal has no limit of time but the session's life, which may be renewed, unless one was asked
	 * for: the person at it ends the call.
	 */
	if (call->terminal && !json_object_get(asked, "wall_ms"))
		call->limits.wall_ms = s->run->profile->profile.ceilings.lifetime_ms;
	if (call->terminal && !json_object_get(asked, "cpu_ms"))
		call->limits.cpu_ms = s->run->profile->profile.ceilings.lifetime_ms;
	return 0;
}

/* --- contexts --- */

static struct session_context *find_context(struct session *s, const char *name)
{
	for (size_t i = 0; i < SESSION_CONTEXTS_MAX; i++)
		if (*s->context[i].name && strcmp(s->context[i].name, name) == 0)
			return &s->context[i];
	return NULL;
}

static bool context_is_in_use(const struct session_context *c)
{
	return c->is_there || c->call;
}

static int check_context_is_free(struct session *s, const char *name, uint64_t most, struct denial *why)
{
	const struct session_context *c = find_context(s, name);
	size_t                        n = 0;

	if (c && c->call) {
		deny(why, DENIAL_busy, "context",
		     "%.64s is busy with call %s; interrupt it, wait, or use another context", c->name, c->call->id);
		why->retry_after_ms = QUOTA_RETRY_MS;
		return -1;
	}
	for (size_t i = 0; i < SESSION_CONTEXTS_MAX; i++)
		n += context_is_in_use(&s->context[i]);
	if ((c && context_is_in_use(c)) || n < most)
		return 0;
	return deny(why, DENIAL_denied, "context",
		    "a session of yours has at most %d contexts; use one of those that are there", (int)most);
}

/* Called after check_context_is_free(). If no row is free, takes one whose interpreter is gone. */
static struct session_context *find_or_take_context(struct session *s, const char *name)
{
	struct session_context *c = find_context(s, name), *gone = NULL;

	for (size_t i = 0; i < SESSION_CONTEXTS_MAX && !c; i++)
		if (!*s->context[i].name)
			c = &s->context[i];
		else if (!context_is_in_use(&s->context[i]) && !gone)
			gone = &s->context[i];
	c = c ? c : gone;
	if (strcmp(c->name, name) != 0) {
		*c = (struct session_context){ 0 };
		snprintf(c->name, sizeof c->name, "%s", name);
	}
	return c;
}

/* --- the call --- */

/* No descriptor of the client enters the jail: the text is copied, the socket to its tools is made here. */
static int send_run_to_session_server(struct session_call *call, const struct program_text *code,
				      const struct protocol_request *request, struct denial *why)
{
	struct err e;
	scoped_fd  text    = sealed_create("brig-call", code->text, code->len, &e);
	int        pair[2] = { -1, -1 }, fds[2] = { text, -1 }, r;
	json_t    *message;

	if (text < 0)
		return deny(why, DENIAL_busy, "session", "it takes no request now: out of memory");
	if (call->with_tools && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return deny(why, DENIAL_busy, "session", "it takes no request now: %s", strerror(errno));
	fds[1]      = pair[1];
	call->tools = pair[0];
	message     = json_pack("{ss sI si sI sb sb sO? ss?}", "op", "run", "call", (json_int_t)call->number, "context",
				(int)(call->context - call->session->context), "cpu_ms",
				(json_int_t)call->limits.cpu_ms, "tools", call->with_tools, "written",
				request->takes_additions, "env", request->env, "cwd", request->cwd);
	r           = session_send_or_deny(call->session, message, fds, (size_t)1 + call->with_tools, why);
	fd_closep(&pair[1]);
	return r;
}

static int send_exec_to_session_server(struct session_call *call, const struct protocol_request *r, struct denial *why)
{
	json_t *message = json_pack("{ss sI sI sO sO? ss? sb sb}", "op", "exec", "call", (json_int_t)call->number,
				    "cpu_ms", (json_int_t)call->limits.cpu_ms, "argv", r->argv, "env", r->env, "cwd",
				    r->cwd, "stdin", r->wants_stdin, "detach", r->detach);

	if (message && call->terminal)
		json_object_set_new(message, "terminal",
				    json_pack("[II]", (json_int_t)r->rows, (json_int_t)r->columns));
	if (session_send_or_deny(call->session, message, NULL, 0, why) < 0)
		return -1;
	if (r->detach)
		session_allow_background_messages(call->session);
	return 0;
}

static int check_call_request(const struct session_call *call, const struct protocol_request *r, struct denial *why)
{
	struct program_env env = { 0 };
	int                done;

	if (r->kind == REQUEST_exec && (!json_array_size(r->argv) || !*json_string_value(json_array_get(r->argv, 0))))
		return deny(why, DENIAL_bad_field, "argv[0]", "nothing to run");
	done = run_plan_build_call_env(&env, &call->limits, r->env, why);
	program_env_done(&env);
	return done;
}

static int send_call_to_session_server(struct session_call *call, const struct protocol_request *request,
				       const int *fds, struct denial *why)
{
	struct program_text code = { 0 };
	int                 r;

	if (check_call_request(call, request, why) < 0)
		return -1;
	if (request->kind == REQUEST_exec) {
		r = send_exec_to_session_server(call, request, why);
	} else {
		r = program_text_open(&code, fds[0], why);
		if (r == 0) {
			call->context = find_or_take_context(call->session, request->context);
			r             = send_run_to_session_server(call, &code, request, why);
		}
	}
	if (r == 0 && call->session->run->server->audit)
		attempt_keep_request(&call->attempt, request, &code);
	program_text_close(&code);
	return r;
}

static void session_call_register(struct session_call *call)
{
	struct session *s = call->session;

	TAILQ_INSERT_TAIL(&s->calls, call, link);
	s->calls_len++;
	s->calls_made++;
	call->connection->runs++;
	quota_count_session_call(&s->run->server->quota, &call->connection->access_rule->quota, call->peer.uid);
	if (call->context)
		call->context->call = call;
	session_call_set_start_timer(call);
	session_note_use(s);
}

/* Called before the program is read: a refusal costs little, whatever its size. */
static int check_call_may_start(struct session *s, const struct connection *c, const struct protocol_request *request,
				struct denial *why)
{
	if (s->calls_len >= SESSION_CALLS_MAX) {
		deny(why, DENIAL_busy, "session", "%d calls are under way in it", SESSION_CALLS_MAX);
		why->retry_after_ms = QUOTA_RETRY_MS;
		return -1;
	}
	if (request->terminal && !s->terminal)
		return deny(why, DENIAL_denied, "terminal",
			    "session %.64s was opened without terminals; "
			    "open one with them (brig session open --terminal)",
			    *s->name ? s->name : s->run->id);
	if (request->kind == REQUEST_run &&
	    check_context_is_free(s, request->context, c->access_rule->quota.contexts, why) < 0)
		return -1;
	return quota_check_session_call(&c->server->quota, &c->access_rule->quota, c->peer.uid,
					clock_ms(CLOCK_MONOTONIC), why);
}

int session_call_start(struct session *s, struct connection *c, const struct protocol_request *request, const int *fds,
		       struct denial *why)
{
	struct session_call *call;
	struct err           e;

	if (check_call_may_start(s, c, request, why) < 0)
		return -1;
	call = calloc(1, sizeof *call);
	if (!call)
		return deny(why, DENIAL_broken, NULL, "out of memory");
	*call = (struct session_call){
		.session     = s,
		.connection  = c,
		.peer        = c->peer,
		.tag         = request->tag,
		.with_stdin  = request->wants_stdin,
		.with_tools  = request->has_tools,
		.terminal    = request->terminal,
		.tools       = -1,
		.reason      = CALL_UNDECIDED,
		.status      = -1,
		.cpu_ms      = -1,
		.asked_ms    = clock_ms(CLOCK_MONOTONIC),
		.victims     = s->victims,
		.number      = s->calls_made + 1,
		.interpreter = request->kind == REQUEST_exec && s->calls_made == 0 ? CALL_STARTS_NEW : CALL_KEEPS,
	};
	call->net_mark = served_net_copy_report(&s->run->net); /* before the program may begin */
	if (run_id_make(call->id, &e) < 0)
		deny_err(why, DENIAL_broken, NULL, &e);
	else if (call_lower_limits(call, s, request->limits, why) == 0 &&
		 send_call_to_session_server(call, request, fds, why) == 0) {
		session_call_register(call);
		return 0;
	}
	fd_closep(&call->tools);
	free(call->net_mark);
	free(call);
	return -1;
}
