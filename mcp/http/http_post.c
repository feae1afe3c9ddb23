#include "http_post.h"

#include "http_rules.h"
#include "id_scan.h"
#include "method.h"
#include "metrics.h"
#include "named_session.h"
#include "text.h"
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define EVENTS_MAX    (16 * MIB) /* that a client has not read yet */
#define KEEP_ALIVE_MS 12000
#define BODIES_MAX    (128 * MIB) /* of all posts together */

static void post_send_message(struct channel *ch, struct call *c, const json_t *message);
static void post_answer(struct channel *ch, struct call *c, const json_t *message, int http_status);
static void post_on_call_dropped(struct channel *ch, struct call *c);

static const struct channel_ops post_ops = { .send = post_send_message, .answer = post_answer, .gone = post_on_call_dropped };

/* --- its life --- */

struct http_post *http_post_create(struct http_server *s, struct MHD_Connection *connection)
{
	struct http_post *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->server         = s;
	p->connection     = connection;
	p->channel.ops    = &post_ops;
	p->channel.legacy = REVISION_2025_03_26;
	TAILQ_INSERT_TAIL(&s->posts, p, link);
	return p;
}

static void post_free_body(struct http_post *p)
{
	p->server->bodies -= p->body_room;
	free(p->body);
	p->body      = NULL;
	p->body_room = 0;
}

static void post_free(struct http_post *p)
{
	TAILQ_REMOVE(&p->server->posts, p, link);
	head_done(&p->head);
	json_decref(p->answers);
	post_free_body(p);
	free(p->answer);
	free(p->events);
	free(p);
}

static void post_free_if_over(struct http_post *p)
{
	if (!p->connection && !p->pending)
		post_free(p);
}

void http_post_detach_connection(struct http_post *p)
{
	p->connection = NULL;
	p->wire       = NULL;
	p->gone       = true;
	p->pending++; /* so that the end of the last call does not free p here */
	if (p->modern)
		calls_cancel_all(p->server->mcp, &p->channel);
	p->pending--;
	post_free_if_over(p);
}

/* --- waiting --- */

static void post_resume_connection(struct http_post *p)
{
	if (!p->suspended)
		return;
	p->suspended = false;
	MHD_resume_connection(p->connection);
	http_daemon_run_soon(&p->server->http);
}

void http_post_abort(struct http_post *p)
{
	p->gone = true;
	post_resume_connection(p);
}

/* Legacy clients may shut down their sending side and still read the answer, which is rare; modern ones never do. */
void http_post_abort_if_modern(struct http_post *p)
{
	if (p->modern && p->suspended)
		http_post_abort(p);
}

static void post_suspend_connection(struct http_post *p)
{
	MHD_suspend_connection(p->connection);
	p->suspended = true;
	if (p->wire && p->wire->ended)
		http_post_abort_if_modern(p);
}

/* --- the body --- */

static int post_grow_body(struct http_post *p, size_t len)
{
	size_t room = p->body_room ? p->body_room : 4096;
	char  *grown;

	while (room < p->body_len + len)
		room *= 2;
	if (room == p->body_room)
		return 0;
	grown = p->server->bodies + room - p->body_room > BODIES_MAX ? NULL : realloc(p->body, room);
	if (!grown)
		return -1;
	p->server->bodies += room - p->body_room;
	p->body      = grown;
	p->body_room = room;
	return 0;
}

static void post_refuse_busy(struct http_post *p)
{
	post_free_body(p);
	p->route   = ROUTE_REFUSED;
	p->refusal = (struct refusal){ .status = 503,
				       .code   = "busy",
				       .text   = "Too much is being sent at once; try again in a second" };
	metrics_count_refused(p->server->mcp->metrics, p->refusal.code);
}

/*
 * The body of a refused request is read to its end, if it is no longer than twice the limit: the client might lose an
 * answer that was sent before.
 */
bool http_post_add_body(struct http_post *p, const char *bytes, size_t len)
{
	size_t max = p->server->admission.body_max;

	p->seen += len;
	if (p->seen > 2 * max)
		return false;
	if (p->seen > max)
		p->too_large = true;
	/* nothing else has a body: it is not kept for a client that need not even have a token */
	if (p->too_large || p->route != ROUTE_MCP)
		return true;
	if (post_grow_body(p, len) < 0) {
		post_refuse_busy(p);
		return true;
	}
	memcpy(p->body + p->body_len, bytes, len);
	p->body_len += len;
	return true;
}

/* --- answers --- */

static void post_set_answer(struct http_post *p, const json_t *message, int status)
{
	free(p->answer);
	p->answer = message ? rpc_dump_to_send(message, &p->answer_len) : NULL;
	p->status = message && !p->answer ? 500 : status;
}

static void post_set_failure(struct http_post *p, const json_t *id, struct rpc_error *e, int status)
{
	json_t *message = rpc_failure(id, e);

	metrics_count_refused(p->server->mcp->metrics, e->code == RPC_PARSE_ERROR       ? "json"
						 : e->code == RPC_HEADER_MISMATCH ? "headers"
										  : "message");
	post_set_answer(p, message, status);
	json_decref(message);
}

static void post_append_event_bytes(struct http_post *p, const char *text, size_t len)
{
	size_t room = p->events_room ? p->events_room : 1024;
	char  *grown;

	if (p->events_at) { /* what was sent makes room */
		p->events_len -= p->events_at;
		memmove(p->events, p->events + p->events_at, p->events_len);
		p->events_at = 0;
	}
	while (room < p->events_len + len)
		room *= 2;
	grown = p->events_len + len > EVENTS_MAX ? NULL : room == p->events_room ? p->events : realloc(p->events, room);
	if (!grown) {
		http_post_abort(p);
		return;
	}
	p->events      = grown;
	p->events_room = room;
	memcpy(p->events + p->events_len, text, len);
	p->events_len += len;
}

static void post_append_message_event(struct http_post *p, const json_t *message)
{
	size_t len;
	char  *text = rpc_dump_to_send(message, &len);

	if (text) {
		post_append_event_bytes(p, "data: ", 6);
		post_append_event_bytes(p, text, len);
		post_append_event_bytes(p, "\n\n", 2);
	}
	free(text);
}

static void post_start_event_stream(struct http_post *p)
{
	size_t  i;
	json_t *one;

	p->streams = true;
	json_array_foreach (p->answers, i, one)
		post_append_message_event(p, one);
	json_array_clear(p->answers);
}

/* A client that does not accept events gets the answer only. */
static void post_send_message(struct channel *ch, struct call *c, const json_t *message)
{
	struct http_post *p = (struct http_post *)ch;

	(void)c;
	if (p->gone || !head_accepts_event_stream(&p->head))
		return;
	if (!p->streams)
		post_start_event_stream(p);
	post_append_message_event(p, message);
	post_resume_connection(p);
}

static void post_on_call_over(struct http_post *p)
{
	p->pending--;
	if (p->pending == 0 && p->began) {
		p->ended = true;
		if (p->batch && !p->streams && json_array_size(p->answers))
			post_set_answer(p, p->answers, 200);
		if (!p->status)
			p->status = 202; /* a notification, or a request that was cancelled: there is no answer */
		post_resume_connection(p);
	}
	post_free_if_over(p);
}

static void post_answer(struct channel *ch, struct call *c, const json_t *message, int http_status)
{
	struct http_post *p = (struct http_post *)ch;

	(void)c;
	if (!p->gone && p->streams)
		post_append_message_event(p, message);
	else if (!p->gone && p->batch)
		json_array_append(p->answers, (json_t *)message);
	else if (!p->gone)
		post_set_answer(p, message, http_status);
	post_on_call_over(p);
}

static void post_on_call_dropped(struct channel *ch, struct call *c)
{
	(void)c;
	post_on_call_over((struct http_post *)ch);
}

/* --- from bytes to calls --- */

/* For a tool that takes a session, or the id of an execution: load balancers choose the server by the header. */
static int check_routing_headers(const struct http_post *p, const struct rpc_message *m, struct rpc_error *e)
{
	const char *name =
		strcmp(m->method, "tools/call") == 0 ? json_string_value(json_object_get(m->params, "name")) : NULL;
	const struct tool *t    = name ? tool_find(name) : NULL;

	const json_t      *arguments = json_object_get(m->params, "arguments");

	/* a client need not send it */
	if (t && tool_has_argument(t, EXECUTION_ARGUMENT) && head_find_param(&p->head, EXECUTION_HEADER))
		return rules_check_param_header(&p->head, EXECUTION_HEADER, json_object_get(arguments, EXECUTION_ARGUMENT), e);
	if (!t || !tool_takes_session(t, p->server->mcp))
		return 0;
	return rules_check_param_header(&p->head, SESSION_HEADER, json_object_get(arguments, SESSION_ARGUMENT), e);
}

static int check_modern_request(struct http_post *p, const struct rpc_message *m, enum revision *revision, struct rpc_error *e,
			int *status)
{
	*status   = 400;
	p->modern = true;
	if (m->kind == RPC_REQUEST && era_check_modern(m, revision, e, status) < 0)
		return -1;
	*status = 400;
	return rules_check_headers(&p->head, m, e) < 0 ? -1 : check_routing_headers(p, m, e);
}

/*
 * --- MCP sessions: no state is kept for them. The id tells the calls of two legacy clients apart that use the same
 * request ids. ---
 */

static void make_session_id(struct http_post *p)
{
	unsigned char raw[16];

	if (p->head.session_id || getrandom(raw, sizeof raw, 0) != sizeof raw)
		return;
	text_put_hex(raw, sizeof raw, p->session);
}

/* A client that changes the mark in its id misleads only itself. */
static const char elicits_mark[] = HEAD_ELICITS_MARK;

static bool session_id_elicits(const char *id)
{
	size_t n = id ? strlen(id) : 0;

	return n > sizeof elicits_mark && strcmp(id + n - (sizeof elicits_mark - 1), elicits_mark) == 0;
}

/*
 * The session is part of the owner: two clients with one token may choose the same names for sessions of execute_code.
 */
static void post_set_session_owner(struct http_post *p)
{
	p->channel.session = p->head.session_id ? p->head.session_id : "";
	p->channel.shares  = p->channel.shares && !head_has_own_session_id(&p->head);
	if (head_has_own_session_id(&p->head))
		(void)snprintf(p->channel.owner, sizeof p->channel.owner, "%s/%s", p->channel.principal,
			       p->head.session_id);
}

enum MHD_Result http_post_end_session(struct http_post *p)
{
	post_set_session_owner(p);
	named_sessions_request_close_all(p->server->mcp, p->channel.owner);
	ended_sessions_add(&p->server->ended, p->channel.owner);
	return http_respond_text(p, 204, "", "");
}

static int check_legacy_request(struct http_post *p, const struct rpc_message *m, enum revision *revision, struct rpc_error *e,
			int *status)
{
	if (m->kind == RPC_REQUEST && !strcmp(m->method, "initialize"))
		make_session_id(p);
	post_set_session_owner(p);
	if (ended_sessions_have(&p->server->ended, p->channel.owner)) {
		*status = 404;
		return rpc_error_set(e, RPC_INVALID_REQUEST,
				     "This MCP session has ended; send initialize for a new one");
	}
	return m->kind == RPC_REQUEST ? era_decide_revision(m, &p->channel, revision, e, status) : 0;
}

static void post_dispatch_message(struct http_post *p, struct rpc_message *m)
{
	enum revision    revision = p->channel.legacy;
	struct rpc_error e        = { .code = 0 };
	int              status   = 400, r = -1;

	switch (rules_decide_era(&p->head, m, &p->channel.legacy, &e)) {
	case HTTP_ERA_REFUSED:
		break;
	case HTTP_ERA_LEGACY:
		r = check_legacy_request(p, m, &revision, &e, &status);
		break;
	case HTTP_ERA_MODERN:
		revision = (enum revision)REVISION_MODERN;
		r        = check_modern_request(p, m, &revision, &e, &status);
		break;
	}
	if (r < 0) {
		post_set_failure(p, m->id, &e, status);
		return;
	}
	p->pending += m->kind == RPC_REQUEST;
	p->channel.elicits = !p->modern && p->channel.legacy >= REVISION_2025_06_18 && head_accepts_event_stream(&p->head) &&
			     session_id_elicits(p->head.session_id);
	dispatch_message_as(p->server->mcp, &p->channel, NULL, m, revision);
	if (*p->session && p->channel.elicits) /* initialize has set it */
		strcat(p->session, elicits_mark);
}

static void post_handle_single(struct http_post *p, json_t *source)
{
	struct rpc_message m;
	struct rpc_error   e;

	if (rpc_parse_json(&m, source, &e) < 0)
		post_set_failure(p, m.id, &e, 400);
	else
		post_dispatch_message(p, &m);
	rpc_message_done(&m);
}

/* --- a batch, of 2025-03-26 only --- */

/* A notification or a response is never answered. */
static void append_batch_failure(struct http_post *p, const struct rpc_message *m, struct rpc_error *e)
{
	if (m->kind == RPC_REQUEST)
		json_array_append_new(p->answers, rpc_failure(m->id, e));
}

static void post_handle_batch_message(struct http_post *p, json_t *source)
{
	struct rpc_message m;
	struct rpc_error   e;
	enum revision      revision = p->channel.legacy;
	int                status;

	if (rpc_parse_json(&m, source, &e) < 0) {
		append_batch_failure(p, &m, &e);
	} else if (m.kind == RPC_REQUEST && !strcmp(m.method, "initialize")) {
		rpc_error_set(&e, RPC_INVALID_REQUEST, "initialize must not be part of a batch");
		append_batch_failure(p, &m, &e);
	} else if (check_legacy_request(p, &m, &revision, &e, &status) < 0) {
		append_batch_failure(p, &m, &e);
	} else if (revision_is_modern(revision)) {
		rpc_error_set(&e, RPC_INVALID_REQUEST, "this revision has no batches");
		append_batch_failure(p, &m, &e);
	} else {
		p->pending += m.kind == RPC_REQUEST;
		dispatch_message_as(p->server->mcp, &p->channel, NULL, &m, revision);
	}
	rpc_message_done(&m);
}

static bool post_may_batch(const struct http_post *p)
{
	const char *version = p->head.protocol_version;

	return !version || !strcmp(version, revision_name(REVISION_2025_03_26));
}

static void post_handle_batch(struct http_post *p, json_t *list)
{
	struct rpc_error e;
	size_t           i;
	json_t          *one;

	if (!post_may_batch(p) || !json_array_size(list) || json_array_size(list) > RPC_BATCH) {
		rpc_error_set(&e, RPC_INVALID_REQUEST,
			      "an array: only revision 2025-03-26 has batches, of 1 to %d messages; send one object",
			      RPC_BATCH);
		post_set_failure(p, NULL, &e, 400);
		return;
	}
	p->batch   = true;
	p->answers = json_array();
	json_array_foreach (list, i, one)
		post_handle_batch_message(p, json_incref(one));
}

static void post_handle_body(struct http_post *p)
{
	struct rpc_error e;
	json_t          *source = rpc_load_json(p->body ? p->body : "", p->body_len, &e);

	p->pending++; /* so that a call that ends at once neither answers nor frees p */
	if (!source) {
		json_t *id = id_scan_find(p->body ? p->body : "", p->body_len, true);

		post_set_failure(p, id, &e, 400);
		json_decref(id);
	} else if (json_is_array(source)) {
		post_handle_batch(p, source);
		json_decref(source);
	} else {
		post_handle_single(p, source);
	}
	post_free_body(p);
	p->began = true;
	post_on_call_over(p);
}

/* --- the response --- */

static void response_add_header(struct MHD_Response *r, const char *name, const char *value)
{
	(void)MHD_add_response_header(r, name, value);
}

/* Only pages of configured origins may read the answer. */
static void response_add_cors(const struct http_post *p, struct MHD_Response *r)
{
	if (!admission_is_listed_origin(&p->server->admission, p->head.origin))
		return;
	response_add_header(r, "Access-Control-Allow-Origin", p->head.origin);
	response_add_header(r, "Access-Control-Expose-Headers", "mcp-session-id");
	response_add_header(r, "Access-Control-Allow-Methods", "POST, DELETE");
	response_add_header(r, "Access-Control-Allow-Headers",
		   "authorization, content-type, accept, mcp-protocol-version, mcp-method, mcp-name, "
		   "mcp-param-session, mcp-param-execution, mcp-session-id, last-event-id");
	response_add_header(r, "Vary", "Origin");
}

static enum MHD_Result post_queue_response(struct http_post *p, int status, struct MHD_Response *r)
{
	enum MHD_Result done;

	if (!r)
		return MHD_NO;
	response_add_header(r, "X-Content-Type-Options", "nosniff");
	response_add_cors(p, r);
	done = MHD_queue_response(p->connection, (unsigned)status, r);
	MHD_destroy_response(r);
	return done;
}

enum MHD_Result http_respond_text(struct http_post *p, int status, const char *type, const char *text)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_MUST_COPY);

	if (r && *text)
		response_add_header(r, "Content-Type", type);
	return post_queue_response(p, status, r);
}

enum MHD_Result http_respond_refusal(struct http_post *p)
{
	bool                 unknown = p->refusal.status == 401;
	json_t              *body    = json_pack("{ss ss*}", "error", p->refusal.text, "hint",
				 unknown ? "send the header Authorization: Bearer TOKEN" : NULL);
	char                *text = body ? json_dumps(body, 0) : NULL;
	struct MHD_Response *r =
		text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE) : NULL;

	json_decref(body);
	if (!r)
		return MHD_NO;
	response_add_header(r, "Content-Type", "application/json");
	if (unknown)
		response_add_header(r, "WWW-Authenticate", "Bearer");
	if (p->refusal.allow)
		response_add_header(r, "Allow", p->refusal.allow);
	return post_queue_response(p, p->refusal.status, r);
}

static ssize_t read_event_bytes(void *owner, uint64_t at, char *to, size_t max)
{
	struct http_post *p    = owner;
	size_t            left = p->events_len - p->events_at, n = left < max ? left : max;

	(void)at;
	if (p->gone)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (!n && p->ended)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (!n) {
		post_suspend_connection(p);
		return 0;
	}
	memcpy(to, p->events + p->events_at, n);
	p->events_at += n;
	p->last_sent_ms = loop_now_ms();
	return (ssize_t)n;
}

static enum MHD_Result respond_event_stream(struct http_post *p)
{
	struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16 * KIB, read_event_bytes, p, NULL);

	if (!r)
		return MHD_NO;
	p->last_sent_ms = loop_now_ms();
	response_add_header(r, "Content-Type", "text/event-stream");
	response_add_header(r, "Cache-Control", "no-cache");
	response_add_header(r, "X-Accel-Buffering", "no");
	return post_queue_response(p, 200, r);
}

static enum MHD_Result respond_json_answer(struct http_post *p)
{
	struct MHD_Response *r =
		p->answer ? MHD_create_response_from_buffer(p->answer_len, p->answer, MHD_RESPMEM_MUST_FREE)
			  : MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);

	if (r && p->answer)
		response_add_header(r, "Content-Type", "application/json");
	if (r && *p->session)
		response_add_header(r, "Mcp-Session-Id", p->session);
	p->answer = r ? NULL : p->answer;
	return post_queue_response(p, p->status, r);
}

static enum MHD_Result respond_too_large(struct http_post *p)
{
	p->refusal = (struct refusal){ .status = 413, .code = "size", .text = "The message is too large" };
	metrics_count_refused(p->server->mcp->metrics, p->refusal.code);
	return http_respond_refusal(p);
}

enum MHD_Result http_post_process(struct http_post *p)
{
	if (p->too_large)
		return respond_too_large(p);
	if (!p->began)
		post_handle_body(p); /* does not free p, as a static analyser reports: the connection holds it until http_post_detach_connection() */
	if (p->gone)
		return MHD_NO;
	if (p->streams)
		return respond_event_stream(p);
	if (p->status && !p->pending)
		return respond_json_answer(p);
	post_suspend_connection(p);
	return MHD_YES;
}

void http_post_send_keep_alive(struct http_post *p, int64_t now_ms)
{
	if (!p->streams || !p->suspended || now_ms - p->last_sent_ms < KEEP_ALIVE_MS)
		return;
	post_append_event_bytes(p, ":\n\n", 3);
	post_resume_connection(p);
}
