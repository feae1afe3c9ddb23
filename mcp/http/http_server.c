#define _GNU_SOURCE
#include "http_server.h"

#include "exposition.h"
#include "fd.h"
#include "http_post.h"
#include "inet.h"
#include "metrics.h"
#include "stderr_line.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define HEAD_MAX      (16 * KIB)
#define MEMORY_MAX    (48 * KIB) /* of one connection: the head, and what is being sent */
#define FIRST_HEAD_MS 15000
#define NEXT_HEAD_MS  60000 /* also how long an idle connection is kept */
#define BODY_MS       30000
#define ANSWER_MS     300000 /* for the client to read an answer that is not a stream */
#define SILENT_S      60    /* without a byte sent or received, while one of them is expected */
#define ENDED_MS      2000  /* for requests that the peer sent before it closed */
#define TICK_MS       1000
#define WAIT_MAX_MS   60000
#define LAST_MS       1000  /* for the last answers, when the server ends */

/* --- libmicrohttpd in the loop --- */

/* When libmicrohttpd wants to be called again. It does not consider connections that were resumed while it ran. */
static int64_t wait_wanted(const struct http_server *s)
{
	MHD_UNSIGNED_LONG_LONG wait;

	if (s->resumed)
		return 0;
	return MHD_get_timeout(s->daemon, &wait) == MHD_YES && wait < WAIT_MAX_MS ? (int64_t)wait : WAIT_MAX_MS;
}

static void run(void *owner)
{
	struct http_server *s = owner;
	int64_t             wait;
	int                 turns = 0;

	do {
		s->resumed = false;
		(void)MHD_run(s->daemon);
		wait = wait_wanted(s);
	} while (wait == 0 && ++turns < 8);
	loop_timer_set(&s->mcp->loop, &s->timer, wait ? wait : 1); /* other sources of the loop are served in between */
}

/* --- connections --- */

/* libmicrohttpd then reads end of file, and closes the connection. */
static void cut(struct http_connection *c)
{
	c->cut = true;
	(void)shutdown(c->source.fd, SHUT_RDWR);
}

/* ms 0: no limit. */
static void wait_until(struct http_server *s, struct http_connection *c, bool in_request, int64_t ms)
{
	if (c->ended && ms > ENDED_MS && ms != ANSWER_MS)
		ms = ENDED_MS;
	c->in_request = in_request;
	c->until_ms   = ms ? loop_now_ms() + ms : 0;
	TAILQ_REMOVE(&s->connections, c, link);
	TAILQ_INSERT_TAIL(&s->connections, c, link);
}

static void make_room(struct http_server *s)
{
	struct http_connection *c;

	TAILQ_FOREACH(c, &s->connections, link)
		if (!c->in_request && !c->cut)
			break;
	if (!c)
		c = TAILQ_LAST(&s->connections, http_connection_list);
	metrics_refused(s->mcp->metrics, "connections");
	cut(c);
}

static bool same_peer(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in  *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	return a->ss_family == AF_INET ? a4->sin_addr.s_addr == b4->sin_addr.s_addr : !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof a6->sin6_addr);
}

static bool is_local(const struct sockaddr_storage *peer)
{
	if (peer->ss_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)peer)->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)peer)->sin6_addr);
}

/* A peer address gets at most half of the places, except on loopback, where all clients have one address, as behind a proxy. */
static bool has_too_many(const struct http_server *s, const struct http_connection *mine)
{
	const struct http_connection *c;
	size_t                        n = 0;

	TAILQ_FOREACH(c, &s->connections, link)
		n += same_peer(&c->peer, &mine->peer);
	return !is_local(&mine->peer) && n > 1 && n > s->mcp->settings->max_connections / 2;
}

/* The peer has shut down its sending side. A legacy client may still wait for the answer. */
static void peer_ended(void *owner)
{
	struct http_connection *c    = owner;
	int64_t                 soon = loop_now_ms() + ENDED_MS;

	loop_remove(&c->server->mcp->loop, &c->source);
	c->ended = true;
	if (c->until_ms > soon)
		c->until_ms = soon;
	if (c->post)
		http_post_peer_ended(c->post);
}

static void watch_peer(struct http_server *s, struct http_connection *c)
{
	struct err e;

	c->ended = loop_add_for(&s->mcp->loop, &c->source, EPOLLRDHUP, &e) < 0;
}

static void connection_begin(struct http_server *s, struct MHD_Connection *connection, void **context)
{
	const union MHD_ConnectionInfo *fd   = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	const union MHD_ConnectionInfo *peer = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	struct http_connection         *c    = calloc(1, sizeof *c);

	if (!c || !fd || !peer || !peer->client_addr) {
		free(c);
		return;
	}
	c->server = s;
	c->source = (struct loop_source){ .fd = fd->connect_fd, .ready = peer_ended, .owner = c };
	memcpy(&c->peer, peer->client_addr, peer->client_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
	TAILQ_INSERT_TAIL(&s->connections, c, link);
	watch_peer(s, c);
	wait_until(s, c, false, FIRST_HEAD_MS);
	*context = c;
	s->n_connections++;
	if (has_too_many(s, c))
		cut(c);
	else if (s->n_connections > s->mcp->settings->max_connections)
		make_room(s);
	else
		return;
	http_server_soon(s);
}

static void connection_end(struct http_server *s, struct http_connection *c)
{
	if (!c)
		return;
	if (!c->ended)
		loop_remove(&s->mcp->loop, &c->source);
	TAILQ_REMOVE(&s->connections, c, link);
	s->n_connections--;
	free(c);
}

static void on_connection(void *owner, struct MHD_Connection *connection, void **context, enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		connection_begin(owner, connection, context);
	else
		connection_end(owner, *context);
}

static struct http_connection *connection_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? *(struct http_connection **)info : NULL;
}

static void on_tick(void *owner)
{
	struct http_server     *s   = owner;
	int64_t                 now = loop_now_ms();
	struct http_connection *c;
	struct http_post       *p, *next;

	TAILQ_FOREACH(c, &s->connections, link) {
		if (!c->until_ms || c->until_ms > now || c->cut)
			continue;
		metrics_refused(s->mcp->metrics, "slow");
		cut(c);
	}
	for (p = TAILQ_FIRST(&s->posts); p; p = next) {
		next = TAILQ_NEXT(p, link);
		http_post_keep_alive(p, now);
	}
	loop_timer_set(&s->mcp->loop, &s->tick, TICK_MS);
}

/* --- requests --- */

static enum MHD_Result take_header(void *owner, enum MHD_ValueKind kind, const char *name, size_t name_len, const char *value, size_t value_len)
{
	(void)kind;
	head_check(owner, name, name_len, value ? value : "", value ? value_len : 0);
	head_take(owner, name, value);
	return MHD_YES;
}

static void refuse_stopping(struct http_post *p)
{
	p->route   = ROUTE_REFUSED;
	p->refusal = (struct refusal){ .status = 503, .code = "stopping", .text = "This server is stopping; try again in a while" };
}

static void read_head(struct http_server *s, struct http_post *p, const char *method, const char *path)
{
	const union MHD_ConnectionInfo *size = MHD_get_connection_info(p->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	(void)MHD_get_connection_values_n(p->connection, MHD_HEADER_KIND, take_header, &p->head);
	if (size && size->header_size > HEAD_MAX) {
		p->route   = ROUTE_REFUSED;
		p->refusal = (struct refusal){ .status = 431, .code = "header", .text = "The header has more than 16 KiB" };
	} else {
		p->route = admission_decide(&s->admission, &p->head, method, path, &p->refusal);
		token_principal(&s->admission.token, p->head.authorization, p->channel.principal, sizeof p->channel.principal);
		p->channel.shares = !token_is_named(&s->admission.token);
		if (s->drains && p->route == ROUTE_MCP)
			refuse_stopping(p);
	}
	if (p->route == ROUTE_REFUSED)
		metrics_refused(s->mcp->metrics, p->refusal.code);
}

/*
 * May the request be refused before its body is read? The connection is closed then. A body that is already being sent is read
 * first, up to a limit: data that arrives at a closed socket makes the kernel reset the connection, and the client loses the
 * answer.
 */
static bool refuse_early(const struct http_server *s, const struct http_post *p)
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

static enum MHD_Result begin(struct http_server *s, struct MHD_Connection *connection, const char *path, const char *method, void **post)
{
	struct http_connection *c = connection_of(connection);
	struct http_post       *p = http_post_create(s, connection);

	if (!p)
		return MHD_NO;
	*post   = p;
	p->wire = c;
	if (c) {
		c->post = p;
		wait_until(s, c, true, BODY_MS);
	}
	read_head(s, p, method, path);
	return refuse_early(s, p) ? http_respond_refusal(p) : MHD_YES;
}

static enum MHD_Result respond_metrics(struct http_post *p)
{
	char           *text = NULL;
	size_t          len  = 0;
	FILE           *out  = open_memstream(&text, &len);
	enum MHD_Result r;

	cells_ask(&p->server->cells, p->server->mcp);
	if (out) {
		metrics_print(p->server->mcp->metrics, out);
		(void)fclose(out);
	}
	r = text ? http_respond_text(p, 200, EXPOSITION_TYPE, text) : MHD_NO;
	free(text);
	return r;
}

static enum MHD_Result respond(struct http_post *p)
{
	switch (p->route) {
	case ROUTE_REFUSED:
		return http_respond_refusal(p);
	case ROUTE_MCP:
		return http_post_go_on(p);
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

static enum MHD_Result on_request(void *owner, struct MHD_Connection *connection, const char *path, const char *method, const char *version,
				  const char *body, size_t *body_len, void **post)
{
	struct http_connection *c = connection_of(connection);
	struct http_post       *p = *post;
	enum MHD_Result         done;
	size_t                  len;

	(void)version;
	if (!p)
		return begin(owner, connection, path, method, post);
	if (*body_len) {
		len       = *body_len;
		*body_len = 0;
		return http_post_take(p, body, len) ? MHD_YES : MHD_NO;
	}
	if (c)
		wait_until(owner, c, true, 0);
	done = respond(p);
	if (c && !p->suspended && !p->streams)
		wait_until(owner, c, true, ANSWER_MS);
	return done;
}

/* --- the end --- */

/* Posts without a connection belong to calls of clients that are gone: nothing can be sent to these. */
static void end_if_drained(struct http_server *s)
{
	const struct http_post *p;

	if (!s->drains)
		return;
	TAILQ_FOREACH(p, &s->posts, link)
		if (p->connection)
			return;
	s->mcp->ends = true;
}

static void on_last(void *owner)
{
	((struct http_server *)owner)->mcp->ends = true;
}

static void on_drained(void *owner)
{
	struct http_server *s = owner;

	s->drained.due = on_last;
	loop_timer_set(&s->mcp->loop, &s->drained, LAST_MS);
	calls_fail_all(s->mcp, "The server is stopping, and has ended the program; call again in a while");
}

void http_drain(struct http_server *s, uint64_t ms)
{
	if (s->drains || !ms) {
		s->mcp->ends = true;
		return;
	}
	s->drains  = true;
	s->drained = (struct loop_timer){ .due = on_drained, .owner = s };
	loop_timer_set(&s->mcp->loop, &s->drained, (int64_t)ms);
	end_if_drained(s);
}

static void on_completed(void *owner, struct MHD_Connection *connection, void **post, enum MHD_RequestTerminationCode how)
{
	struct http_connection *c = connection_of(connection);

	(void)how;
	if (c) {
		c->post = NULL;
		wait_until(owner, c, false, NEXT_HEAD_MS);
	}
	if (*post)
		http_post_leave(*post);
	*post = NULL;
	end_if_drained(owner);
}

/* --- to listen --- */

static void url_set(struct http_server *s, int fd)
{
	struct sockaddr_storage address = { 0 };
	socklen_t               len     = sizeof address;
	struct sockaddr_in      four; /* its port is where that of version 6 is */
	struct sockaddr_in6     six;
	char                    text[INET6_ADDRSTRLEN] = "";

	(void)getsockname(fd, (struct sockaddr *)&address, &len);
	memcpy(&four, &address, sizeof four);
	memcpy(&six, &address, sizeof six);
	if (address.ss_family == AF_INET6)
		(void)inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
	else
		(void)inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
	(void)snprintf(s->url, sizeof s->url, address.ss_family == AF_INET6 ? "http://[%s]:%u/mcp" : "http://%s:%u/mcp", text, ntohs(four.sin_port));
	if (strcmp(text, "0.0.0.0") != 0 && strcmp(text, "::") != 0)
		(void)snprintf(s->admission.address, sizeof s->admission.address, "%s", text);
}

static int admission_set(struct http_server *s, struct err *e)
{
	const struct settings *set      = s->mcp->settings;
	bool                   no_token = !set->token || !*set->token;

	s->admission.allow_origin = set->allow_origin;
	s->admission.allow_host   = set->allow_host;
	s->admission.body_max     = RPC_MAX;
	if (no_token && set->insecure_loopback && !address_is_loopback(set->host))
		return err_set(e, ERR_BAD_SPEC, "--insecure-loopback is for loopback addresses, and %s is none; say --host 127.0.0.1, or give a --token-file", set->host);
	if (!(no_token && set->insecure_loopback) && token_set(&s->admission.token, no_token ? "" : set->token, e) < 0)
		return -1;
	return 0;
}

/* %XX in a path is not decoded: a path has one spelling, and no %00 that would end it. */
static size_t keep_escapes(void *owner, struct MHD_Connection *connection, char *text)
{
	(void)owner;
	(void)connection;
	return strlen(text);
}

/* 16 more connections than the limit are accepted, until others have been closed for them. */
static struct MHD_Daemon *daemon_start(struct http_server *s, int listener)
{
	const unsigned connections = (unsigned)s->mcp->settings->max_connections + 16;

	return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, s,
				MHD_OPTION_LISTEN_SOCKET, listener,
				MHD_OPTION_CONNECTION_LIMIT, connections,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_MAX,
				MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENT_S,
				MHD_OPTION_STRICT_FOR_CLIENT, 1,
				MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,
				MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
				MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
				MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
				MHD_OPTION_END);
}

static int daemon_open(struct http_server *s, int listener, struct err *e)
{
	const union MHD_DaemonInfo *info;

	s->daemon = daemon_start(s, listener);
	if (!s->daemon)
		return err_set(e, ERR_SETUP, "libmicrohttpd does not start: %s", strerror(errno));
	info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info)
		return err_set(e, ERR_SETUP, "libmicrohttpd has no epoll descriptor");
	s->source = (struct loop_source){ .fd = info->epoll_fd, .ready = run, .owner = s };
	s->timer  = (struct loop_timer){ .due = run, .owner = s };
	s->tick   = (struct loop_timer){ .due = on_tick, .owner = s };
	if (loop_add(&s->mcp->loop, &s->source, e) < 0)
		return -1;
	loop_timer_set(&s->mcp->loop, &s->tick, TICK_MS);
	return 0;
}

int http_open(struct http_server *ret, struct mcp *m, struct err *e)
{
	int listener;

	*ret = (struct http_server){ .mcp = m };
	TAILQ_INIT(&ret->connections);
	TAILQ_INIT(&ret->posts);
	if (admission_set(ret, e) < 0)
		return -1;
	listener = inet_listen(m->settings->host, m->settings->port, e);
	if (listener < 0)
		return e->kind == ERR_BAD_SPEC ? err_wrap(e, "--host") : -1;
	url_set(ret, listener);
	if (daemon_open(ret, listener, e) < 0) {
		if (!ret->daemon)
			close(listener);
		http_close(ret);
		return -1;
	}
	return 0;
}

/* Suspended connections are resumed first: libmicrohttpd aborts the process if one is left when it is stopped. */
void http_close(struct http_server *s)
{
	struct http_post *p, *next;

	if (!s->daemon)
		return;
	for (p = TAILQ_FIRST(&s->posts); p; p = next) {
		next = TAILQ_NEXT(p, link);
		http_post_abort(p);
	}
	(void)MHD_run(s->daemon);
	cells_done(&s->cells);
	loop_timer_clear(&s->mcp->loop, &s->drained);
	loop_timer_clear(&s->mcp->loop, &s->timer);
	loop_timer_clear(&s->mcp->loop, &s->tick);
	loop_remove(&s->mcp->loop, &s->source);
	MHD_stop_daemon(s->daemon);
	s->daemon = NULL;
	for (p = TAILQ_FIRST(&s->posts); p; p = next) { /* those of legacy clients outlive their connections */
		next = TAILQ_NEXT(p, link);
		calls_cancel_all(s->mcp, &p->channel);
	}
}
