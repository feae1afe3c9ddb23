#define _GNU_SOURCE
#include "api_server.h"

#include "api_run.h"
#include "exchange.h"
#include "inet.h"
#include "route.h"
#include "submission.h"
#include "text.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define API_HEAD_MAX      (16 * KIB)
#define API_MEMORY_MAX    (48 * KIB) /* of one connection: the head, and what is being sent */
#define API_FIRST_HEAD_MS 15000
#define API_NEXT_HEAD_MS  60000 /* also how long an idle connection is kept */
#define API_BODY_MS       60000
#define API_ANSWER_MS     300000 /* for the client to read an answer */
#define API_LAST_MS       1000   /* for the last answers, when the server ends */

/* --- is it let in? --- */

static bool texts_have(const char *const *list, const char *text)
{
	for (; *list; list++)
		if (strcasecmp(*list, text) == 0)
			return true;
	return false;
}

/* A page of an attacker whose name was made to point here (DNS rebinding) sends that name. */
static bool is_served_host(const struct api_server *s, const char *host)
{
	char name[256];

	if (!host || !http_parse_authority_host(host, name))
		return false;
	return inet_host_is_loopback(name) || texts_have(s->api->settings->allow_host, host) ||
	       texts_have(s->api->settings->allow_host, name) || (*s->address && strcasecmp(s->address, name) == 0);
}

/* Browsers send it with each POST: no page may post here unless it is named. */
static bool is_served_origin(const struct api_server *s, const char *origin)
{
	return !origin || texts_have(s->api->settings->allow_origin, origin);
}

static void refuse_unknown_path(struct exchange *x, const char *method, const char *path, const char *allow)
{
	if (!*allow) {
		exchange_refuse(x, 404, "path", "Nothing is served at %.100s; /openapi.json has what is", path);
		return;
	}
	x->allow = strdup(allow);
	exchange_refuse(x, 405, "method", "%.20s is not served here; send %s", method, allow);
}

/* piston-client of npm declares its JSON as text. No page of a foreign origin gets so far: see is_served_origin(). */
static void check_body_of_head(struct exchange *x)
{
	const struct http_head *h = &x->head;

	if (!head_has_one_body_length(h))
		exchange_refuse(x, 400, "length", "Send either one Content-Length or Transfer-Encoding: chunked");
	else if (!route_has_body(x->route))
		return;
	else if (!head_has_json_body(h) && !(x->route->api == INTERFACE_piston && head_has_text_body(h)))
		exchange_refuse(x, 415, "content-type", "Send Content-Type: application/json");
	else if (h->content_length && strtoull(h->content_length, NULL, 10) > x->body_max)
		exchange_refuse(x, 413, "size", "A request may have %zu bytes, this one has %.19s", x->body_max,
				h->content_length);
}

static void admit_by_token(struct api_server *s, struct exchange *x)
{
	x->token = x->route->access == ROUTE_OPEN ? NULL : api_tokens_find(&s->api->tokens, &x->head);
	if (!x->token && x->route->access != ROUTE_OPEN)
		exchange_refuse(x, 401, "unauthorized",
				"Unauthorized: send the header Authorization: Bearer TOKEN, or the token as the "
				"password of the URL");
	else if (x->token && x->route->api != INTERFACE_NONE &&
		 !interface_set_has(x->token->interfaces, x->route->api))
		exchange_refuse(x, 403, "interface", "This token may not use the interface %s",
				interface_name(x->route->api));
	else
		check_body_of_head(x);
}

/* Sets the answer if the request is refused. */
static void admit_exchange(struct api_server *s, struct exchange *x, const char *method, const char *path)
{
	const struct http_head *h = &x->head;
	const char             *argument;
	char                    allow[64];
	const struct route     *route =
		route_find(method, path, s->api->settings->interfaces, &argument, allow, sizeof allow);

	if (*h->fault) {
		exchange_refuse(x, 400, "header", "%s", h->fault);
	} else if (!is_served_host(s, h->host) && !(route && strcmp(route->path, "/healthz") == 0)) {
		exchange_refuse(x, 403, "host", "This host name is not served; --allow-host adds one");
	} else if (!is_served_origin(s, h->origin)) {
		exchange_refuse(x, 403, "origin", "Pages of this origin may not call; --allow-origin adds one");
	} else if (h->origin && strcmp(method, "OPTIONS") == 0) {
		exchange_answer_text(x, 204, NULL, "");
	} else if (!route) {
		refuse_unknown_path(x, method, path, allow);
	} else {
		x->route    = route;
		x->argument = strdup(argument);
		admit_by_token(s, x);
	}
}

static enum MHD_Result store_api_header(void *owner, enum MHD_ValueKind kind, const char *name, size_t name_len,
					const char *value, size_t value_len)
{
	(void)kind;
	head_check_header(owner, name, name_len, value ? value : "", value ? value_len : 0);
	head_store_header(owner, name, value);
	return MHD_YES;
}

static void exchange_read_head(struct api_server *s, struct exchange *x, const char *method, const char *path)
{
	const union MHD_ConnectionInfo *size =
		MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	(void)MHD_get_connection_values_n(x->connection, MHD_HEADER_KIND, store_api_header, &x->head);
	if (size && size->header_size > API_HEAD_MAX)
		exchange_refuse(x, 431, "header", "The header has more than 16 KiB");
	else
		admit_exchange(s, x, method, path);
}

/* --- its life --- */

static struct exchange *exchange_create(struct api_server *s, struct MHD_Connection *connection)
{
	struct exchange *x = calloc(1, sizeof *x);

	if (!x)
		return NULL;
	x->api        = s->api;
	x->connection = connection;
	x->body_max   = s->api->settings->body_bytes;
	x->wire       = http_connection_of(connection);
	TAILQ_INSERT_TAIL(&s->exchanges, x, link);
	return x;
}

static void exchange_destroy(struct api_server *s, struct exchange *x)
{
	if (x->work)
		x->abandon(x->work);
	TAILQ_REMOVE(&s->exchanges, x, link);
	s->bodies -= x->body_room;
	exchange_free_body(x);
	head_done(&x->head);
	json_decref(x->json);
	free(x->allow);
	free(x->argument);
	free(x->answer);
	free(x);
}

static void api_on_peer_end(void *request)
{
	struct exchange *x = request;

	if (x->is_suspended)
		exchange_set_gone(x);
}

/*
 * May the request be refused before its body is read? The connection is closed then. A body that is already being sent
 * is read first, up to a limit: data that arrives at a closed socket makes the kernel reset the connection, and the
 * client loses the answer.
 */
static bool may_refuse_at_once(const struct exchange *x)
{
	switch (x->status) {
	case 413:
		return x->head.expect || strtoull(x->head.content_length, NULL, 10) > 2 * x->body_max;
	case 400:
	case 431:
		return true;
	default:
		return x->head.expect != NULL;
	}
}

static enum MHD_Result begin_exchange(struct api_server *s, struct MHD_Connection *connection, const char *path,
				      const char *method, void **ret)
{
	struct exchange *x = exchange_create(s, connection);

	if (!x)
		return MHD_NO;
	*ret = x;
	if (x->wire) {
		x->wire->request = x;
		http_connection_set_deadline(x->wire, true, API_BODY_MS, false);
	}
	exchange_read_head(s, x, method, path);
	if (!x->status || !may_refuse_at_once(x))
		return MHD_YES;
	x->must_close = true;
	return exchange_respond(x);
}

/* false: end the connection. A refused body is read to its end, if it is no longer than twice the limit. */
static bool receive_body(struct api_server *s, struct exchange *x, const char *bytes, size_t len)
{
	x->seen += len;
	if (x->seen > 2 * x->body_max)
		return false;
	x->is_too_large |= x->seen > x->body_max;
	if (x->is_too_large || x->status || !x->route || !route_has_body(x->route))
		return true;
	if (exchange_add_body(x, bytes, len, &s->bodies))
		return true;
	x->retry_after_s = 1;
	exchange_refuse(x, exchange_fault_status(x->route->api, FAULT_BUSY), "busy",
			"Too much is being sent at once; try again in a second");
	return true;
}

static void handle_exchange(struct exchange *x)
{
	x->has_begun = true;
	if (x->is_too_large && !x->status)
		exchange_refuse(x, 413, "size", "The request is too large; it may have %zu bytes", x->body_max);
	if (x->status || (route_has_body(x->route) && !exchange_parse_body(x)))
		return;
	exchange_free_body(x);
	x->route->handle(x);
}

static enum MHD_Result api_on_request(void *owner, struct MHD_Connection *connection, const char *path,
				      const char *method, const char *version, const char *body, size_t *body_len,
				      void **request)
{
	struct api_server *s = owner;
	struct exchange   *x = *request;
	enum MHD_Result    done;
	size_t             len = *body_len;

	(void)version;
	if (!x)
		return begin_exchange(s, connection, path, method, request);
	*body_len = 0;
	if (len)
		return receive_body(s, x, body, len) ? MHD_YES : MHD_NO;
	if (x->wire)
		http_connection_set_deadline(x->wire, true, 0, false);
	if (!x->has_begun)
		handle_exchange(x);
	done = exchange_respond(x);
	if (x->wire && !x->is_suspended)
		http_connection_set_deadline(x->wire, true, API_ANSWER_MS, true);
	return done;
}

/* --- the end --- */

static void end_api_if_drained(struct api_server *s)
{
	if (s->api->drains && TAILQ_EMPTY(&s->exchanges) && !s->api->n_under_way)
		s->api->ends = true;
}

static void api_on_drain_end(void *owner)
{
	((struct api_server *)owner)->api->ends = true;
}

/* Runs that are left are answered as brig's fault, not as the program's. */
static void api_on_drain_timeout(void *owner)
{
	struct api_server *s = owner;
	struct exchange   *x;

	s->drained.due = api_on_drain_end;
	loop_timer_set(&s->api->loop, &s->drained, API_LAST_MS);
	TAILQ_FOREACH(x, &s->exchanges, link)
		if (x->work) {
			x->abandon(x->work);
			exchange_refuse(x, exchange_fault_status(x->route->api, FAULT_BRIG), "stopping",
					"brig-api is stopping, and has ended the program; try again in a while");
		}
}

void api_server_drain(struct api_server *s, uint64_t ms)
{
	if (s->api->drains || !ms) {
		s->api->ends = true;
		return;
	}
	s->api->drains = true;
	api_runs_fail_waiting(s->api, "stopping", "brig-api is stopping; try again in a while");
	s->drained = (struct loop_timer){ .due = api_on_drain_timeout, .owner = s };
	loop_timer_set(&s->api->loop, &s->drained, (int64_t)ms);
	end_api_if_drained(s);
}

static void api_on_completed(void *owner, struct MHD_Connection *connection, void **request,
			     enum MHD_RequestTerminationCode how)
{
	struct api_server      *s = owner;
	struct http_connection *c = http_connection_of(connection);

	(void)how;
	if (c) {
		c->request = NULL;
		http_connection_set_deadline(c, false, API_NEXT_HEAD_MS, false);
	}
	if (*request)
		exchange_destroy(s, *request);
	*request = NULL;
	end_api_if_drained(s);
}

static void api_on_refused_connection(void *owner, const char *why)
{
	api_metrics_count_refused(&((struct api_server *)owner)->api->metrics, why);
}

/* Runs of Judge0 that nobody waits for end without a request. */
static void api_on_tick(void *owner)
{
	end_api_if_drained(owner);
}

/* --- to listen --- */

int api_server_open(struct api_server *ret, struct api *a, struct err *e)
{
	static const struct http_events events = { .request    = api_on_request,
						   .completed  = api_on_completed,
						   .peer_ended = api_on_peer_end,
						   .refused    = api_on_refused_connection,
						   .tick       = api_on_tick };
	char                            host[INET6_ADDRSTRLEN];
	int                             listener;

	*ret    = (struct api_server){ .api = a };
	a->http = (struct http_daemon){ .loop            = &a->loop,
					.events          = &events,
					.owner           = ret,
					.first_ms        = API_FIRST_HEAD_MS,
					.connections_max = a->settings->connections };
	TAILQ_INIT(&ret->exchanges);
	a->routes = routes;
	if (!(a->submissions = submissions_create(a)))
		return err_set(e, ERR_LIMIT, "out of memory");
	listener = inet_listen(a->settings->host, a->settings->port, e);
	if (listener < 0)
		return e->kind == ERR_BAD_SPEC ? err_wrap(e, "--listen") : -1;
	inet_format_url(listener, "", ret->url, sizeof ret->url, host);
	if (strcmp(host, "0.0.0.0") != 0 && strcmp(host, "::") != 0)
		(void)snprintf(ret->address, sizeof ret->address, "%s", host);
	if (http_daemon_open(&a->http, listener, API_MEMORY_MAX, e) == 0)
		return 0;
	if (!a->http.mhd)
		close(listener);
	api_server_close(ret);
	return -1;
}

/* Suspended connections are resumed first: libmicrohttpd aborts the process if one is left when it is stopped. */
void api_server_close(struct api_server *s)
{
	struct exchange *x, *next;

	if (s->api->http.mhd) {
		for (x = TAILQ_FIRST(&s->exchanges); x; x = next) {
			next = TAILQ_NEXT(x, link);
			exchange_set_gone(x);
		}
		(void)MHD_run(s->api->http.mhd);
		loop_timer_clear(&s->api->loop, &s->drained);
		http_daemon_close(&s->api->http);
	}
	submissions_destroy(s->api->submissions);
	s->api->submissions = NULL;
}
