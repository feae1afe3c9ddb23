#define _GNU_SOURCE
#include "http_server.h"

#include "exposition.h"
#include "fd.h"
#include "http_post.h"
#include "inet.h"
#include "metrics.h"
#include "stderr_line.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD_MAX      (16 * KIB)
#define MEMORY_MAX    (48 * KIB) /* of one connection: the head, and what is being sent */
#define FIRST_HEAD_MS 15000
#define NEXT_HEAD_MS  60000 /* also how long an idle connection is kept */
#define BODY_MS       30000
#define ANSWER_MS     300000 /* for the client to read an answer that is not a stream */
#define LAST_MS       1000  /* for the last answers, when the server ends */

/* --- connections --- */

static void on_refused_connection(void *owner, const char *why)
{
	metrics_count_refused(((struct http_server *)owner)->mcp->metrics, why);
}

static void on_peer_end(void *request)
{
	http_post_abort_if_modern(request);
}

static void on_keep_alive_tick(void *owner)
{
	struct http_server *s   = owner;
	int64_t             now = loop_now_ms();
	struct http_post   *p, *next;

	for (p = TAILQ_FIRST(&s->posts); p; p = next) {
		next = TAILQ_NEXT(p, link);
		http_post_send_keep_alive(p, now);
	}
}

/* --- requests --- */

static enum MHD_Result store_header(void *owner, enum MHD_ValueKind kind, const char *name, size_t name_len,
				   const char *value, size_t value_len)
{
	(void)kind;
	head_check_header(owner, name, name_len, value ? value : "", value ? value_len : 0);
	head_store_header(owner, name, value);
	return MHD_YES;
}

static void post_read_head(struct http_server *s, struct http_post *p, const char *method, const char *path)
{
	const union MHD_ConnectionInfo *size =
		MHD_get_connection_info(p->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	(void)MHD_get_connection_values_n(p->connection, MHD_HEADER_KIND, store_header, &p->head);
	if (size && size->header_size > HEAD_MAX) {
		p->route   = ROUTE_REFUSED;
		p->refusal =
			(struct refusal){ .status = 431, .code = "header", .text = "The header has more than 16 KiB" };
	} else {
		p->route = admission_choose_route(&s->admission, &p->head, method, path, &p->refusal);
		token_print_principal(&s->admission.token, p->head.authorization, p->channel.principal,
				sizeof p->channel.principal);
		p->channel.shares = !token_rows_are_named(&s->admission.token);
		if (s->drains && p->route == ROUTE_MCP) {
			p->route   = ROUTE_REFUSED;
			p->refusal = (struct refusal){ .status = 503,
						       .code   = "stopping",
						       .text   = "This server is stopping; try again in a while" };
		}
	}
	if (p->route == ROUTE_REFUSED)
		metrics_count_refused(s->mcp->metrics, p->refusal.code);
}

/*
 * May the request be refused before its body is read? The connection is closed then. A body that is already being sent
 * is read first, up to a limit: data that arrives at a closed socket makes the kernel reset the connection, and the
 * client loses the answer.
 */
static bool may_refuse_before_body(const struct http_server *s, const struct http_post *p)
{
	if (p->route != ROUTE_REFUSED)
		return false;
	switch (p->refusal.status) {
	case 413:
		return p->head.expect || strtoull(p->head.content_length, NULL, 10) > 2 * s->admission.body_max;
	case 400:
	case 431:
		return true;
	default:
		return p->head.expect != NULL;
	}
}

static enum MHD_Result create_post_of_request(struct http_server *s, struct MHD_Connection *connection,
					     const char *path, const char *method, void **post)
{
	struct http_connection *c = http_connection_of(connection);
	struct http_post       *p = http_post_create(s, connection);

	if (!p)
		return MHD_NO;
	*post   = p;
	p->wire = c;
	if (c) {
		c->request = p;
		http_connection_set_deadline(c, true, BODY_MS, false);
	}
	post_read_head(s, p, method, path);
	return may_refuse_before_body(s, p) ? http_respond_refusal(p) : MHD_YES;
}

static enum MHD_Result respond_metrics(struct http_post *p)
{
	char           *text = NULL;
	size_t          len  = 0;
	FILE           *out  = open_memstream(&text, &len);
	enum MHD_Result r;

	cells_ask_stats(&p->server->cells, p->server->mcp);
	if (out) {
		metrics_print(p->server->mcp->metrics, out);
		(void)fclose(out);
	}
	r = text ? http_respond_text(p, 200, EXPOSITION_TYPE, text) : MHD_NO;
	free(text);
	return r;
}

static enum MHD_Result respond_by_route(struct http_post *p)
{
	switch (p->route) {
	case ROUTE_REFUSED:
		return http_respond_refusal(p);
	case ROUTE_MCP:
		return http_post_process(p);
	case ROUTE_HEALTH:
		return p->server->drains ? http_respond_text(p, 503, "application/json", "{\"status\": \"stopping\"}") :
					   http_respond_text(p, 200, "application/json", "{\"status\": \"ok\"}");
	case ROUTE_METRICS:
		return respond_metrics(p);
	case ROUTE_END:
		return http_post_end_session(p);
	case ROUTE_PREFLIGHT:
		return http_respond_text(p, 204, "", "");
	}
	return MHD_NO;
}

static enum MHD_Result on_request(void *owner, struct MHD_Connection *connection, const char *path, const char *method,
				  const char *version, const char *body, size_t *body_len, void **post)
{
	struct http_connection *c = http_connection_of(connection);
	struct http_post       *p = *post;
	enum MHD_Result         done;
	size_t                  len;

	(void)version;
	if (!p)
		return create_post_of_request(owner, connection, path, method, post);
	if (*body_len) {
		len       = *body_len;
		*body_len = 0;
		return http_post_add_body(p, body, len) ? MHD_YES : MHD_NO;
	}
	if (c)
		http_connection_set_deadline(c, true, 0, false);
	done = respond_by_route(p);
	if (c && !p->suspended && !p->streams)
		http_connection_set_deadline(c, true, ANSWER_MS, true);
	return done;
}

/* --- the end --- */

/* Posts without a connection belong to calls of clients that are gone: nothing can be sent to these. */
static void end_server_if_drained(struct http_server *s)
{
	const struct http_post *p;

	if (!s->drains)
		return;
	TAILQ_FOREACH(p, &s->posts, link)
		if (p->connection)
			return;
	s->mcp->ends = true;
}

static void on_drain_end(void *owner)
{
	((struct http_server *)owner)->mcp->ends = true;
}

static void on_drain_timeout(void *owner)
{
	struct http_server *s = owner;

	s->drained.due = on_drain_end;
	loop_timer_set(&s->mcp->loop, &s->drained, LAST_MS);
	calls_fail_all(s->mcp, "The server is stopping, and has ended the program; call again in a while");
}

void http_server_drain(struct http_server *s, uint64_t ms)
{
	if (s->drains || !ms) {
		s->mcp->ends = true;
		return;
	}
	s->drains  = true;
	s->drained = (struct loop_timer){ .due = on_drain_timeout, .owner = s };
	loop_timer_set(&s->mcp->loop, &s->drained, (int64_t)ms);
	end_server_if_drained(s);
}

static void on_request_completed(void *owner, struct MHD_Connection *connection, void **post,
			 enum MHD_RequestTerminationCode how)
{
	struct http_connection *c = http_connection_of(connection);

	(void)how;
	if (c) {
		c->request = NULL;
		http_connection_set_deadline(c, false, NEXT_HEAD_MS, false);
	}
	if (*post)
		http_post_detach_connection(*post);
	*post = NULL;
	end_server_if_drained(owner);
}

/* --- to listen --- */

static int configure_admission(struct http_server *s, struct err *e)
{
	const struct settings *set      = s->mcp->settings;
	bool                   no_token = !set->token || !*set->token;

	s->admission.allow_origin = set->allow_origin;
	s->admission.allow_host   = set->allow_host;
	s->admission.body_max     = RPC_MAX;
	if (no_token && set->insecure_loopback && !inet_host_is_loopback(set->host))
		return err_set(e, ERR_BAD_SPEC,
			       "--insecure-loopback needs a loopback address, not %s; use --host 127.0.0.1, "
			       "or give a --token-file",
			       set->host);
	if (!(no_token && set->insecure_loopback) &&
	    token_parse(&s->admission.token, no_token ? "" : set->token, e) < 0)
		return -1;
	return 0;
}

int http_server_open(struct http_server *ret, struct mcp *m, struct err *e)
{
	static const struct http_events events = { .request    = on_request,
						   .completed  = on_request_completed,
						   .peer_ended = on_peer_end,
						   .refused    = on_refused_connection,
						   .tick       = on_keep_alive_tick };
	char                            host[INET6_ADDRSTRLEN];
	int                             listener;

	*ret = (struct http_server){ .mcp  = m,
				     .http = { .loop            = &m->loop,
					       .events          = &events,
					       .owner           = ret,
					       .first_ms        = FIRST_HEAD_MS,
					       .connections_max = m->settings->max_connections } };
	TAILQ_INIT(&ret->posts);
	if (configure_admission(ret, e) < 0)
		return -1;
	listener = inet_listen(m->settings->host, m->settings->port, e);
	if (listener < 0)
		return e->kind == ERR_BAD_SPEC ? err_wrap(e, "--host") : -1;
	inet_format_url(listener, "/mcp", ret->url, sizeof ret->url, host);
	if (strcmp(host, "0.0.0.0") != 0 && strcmp(host, "::") != 0)
		(void)snprintf(ret->admission.address, sizeof ret->admission.address, "%s", host);
	if (http_daemon_open(&ret->http, listener, MEMORY_MAX, e) == 0)
		return 0;
	if (!ret->http.mhd)
		close(listener);
	http_server_close(ret);
	return -1;
}

/* Suspended connections are resumed first: libmicrohttpd aborts the process if one is left when it is stopped. */
void http_server_close(struct http_server *s)
{
	struct http_post *p, *next;

	if (!s->http.mhd)
		return;
	for (p = TAILQ_FIRST(&s->posts); p; p = next) {
		next = TAILQ_NEXT(p, link);
		http_post_abort(p);
	}
	(void)MHD_run(s->http.mhd);
	cells_forget_question(&s->cells);
	loop_timer_clear(&s->mcp->loop, &s->drained);
	http_daemon_close(&s->http);
	for (p = TAILQ_FIRST(&s->posts); p; p = next) { /* those of legacy clients outlive their connections */
		next = TAILQ_NEXT(p, link);
		calls_cancel_all(s->mcp, &p->channel);
	}
}
