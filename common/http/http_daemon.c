#define _GNU_SOURCE
#include "http_daemon.h"

#include "inet.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

enum {
	ENDED_MS    = 2000, /* for requests that the peer sent before it closed */
	SILENT_S    = 60,   /* without a byte sent or received, while one of them is expected */
	TICK_MS     = 1000,
	WAIT_MAX_MS = 60000,
};

/* --- libmicrohttpd in the loop --- */

/*
 * It does not consider connections that were resumed while it ran. Other sources of the loop are served after at most 8
 * runs.
 */
static void run_mhd_daemon(void *owner)
{
	struct http_daemon    *d = owner;
	MHD_UNSIGNED_LONG_LONG wait;
	int                    runs = 0;

	do {
		d->resumed = false;
		(void)MHD_run(d->mhd);
		if (d->resumed)
			wait = 0;
		else if (MHD_get_timeout(d->mhd, &wait) != MHD_YES || wait > WAIT_MAX_MS)
			wait = WAIT_MAX_MS;
	} while (wait == 0 && ++runs < 8);
	loop_timer_set(d->loop, &d->timer, wait ? (int64_t)wait : 1);
}

void http_daemon_run_soon(struct http_daemon *d)
{
	d->resumed = true;
	loop_timer_set(d->loop, &d->timer, 0);
}

/* --- connections --- */

/* libmicrohttpd then reads end of file, and closes the connection. */
static void cut_connection(struct http_connection *c, const char *why)
{
	c->cut = true;
	(void)shutdown(c->source.fd, SHUT_RDWR);
	if (why && c->daemon->events->refused)
		c->daemon->events->refused(c->daemon->owner, why);
}

void http_connection_set_deadline(struct http_connection *c, bool in_request, int64_t ms, bool linger)
{
	if (c->ended && ms > ENDED_MS && !linger)
		ms = ENDED_MS;
	c->in_request = in_request;
	c->until_ms   = ms ? loop_now_ms() + ms : 0;
	TAILQ_REMOVE(&c->daemon->connections, c, link);
	TAILQ_INSERT_TAIL(&c->daemon->connections, c, link);
}

static void cut_quietest_connection(struct http_daemon *d)
{
	struct http_connection *c;

	TAILQ_FOREACH(c, &d->connections, link)
		if (!c->in_request && !c->cut)
			break;
	cut_connection(c ? c : TAILQ_LAST(&d->connections, http_connection_list), "connections");
}

static bool is_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in  *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	return a->ss_family == AF_INET ? a4->sin_addr.s_addr == b4->sin_addr.s_addr :
					 !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof a6->sin6_addr);
}

static bool peer_has_too_many_connections(const struct http_daemon *d, const struct http_connection *mine)
{
	const struct http_connection *c;
	size_t                        n = 0;

	if ((mine->peer.ss_family != AF_INET && mine->peer.ss_family != AF_INET6) || inet_is_loopback(&mine->peer))
		return false;
	TAILQ_FOREACH(c, &d->connections, link)
		n += is_same_host(&c->peer, &mine->peer);
	return n > 1 && n > d->connections_max / 2;
}

static void on_peer_end(void *owner)
{
	struct http_connection *c    = owner;
	int64_t                 soon = loop_now_ms() + ENDED_MS;

	loop_remove(c->daemon->loop, &c->source);
	c->ended = true;
	if (c->until_ms > soon)
		c->until_ms = soon;
	if (c->request && c->daemon->events->peer_ended)
		c->daemon->events->peer_ended(c->request);
}

static void track_connection(struct http_daemon *d, struct MHD_Connection *connection, void **context)
{
	const union MHD_ConnectionInfo *fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct http_connection         *c  = fd ? calloc(1, sizeof *c) : NULL;
	socklen_t                       len = sizeof c->peer;
	struct err                      ignored;

	if (!c)
		return;
	c->daemon = d;
	c->source = (struct loop_source){ .fd = fd->connect_fd, .ready = on_peer_end, .owner = c };
	(void)getpeername(fd->connect_fd, (struct sockaddr *)&c->peer, &len);
	TAILQ_INSERT_TAIL(&d->connections, c, link);
	c->ended = loop_add_events(d->loop, &c->source, EPOLLRDHUP, &ignored) < 0;
	http_connection_set_deadline(c, false, d->first_ms, false);
	*context = c;
	d->n_connections++;
	if (peer_has_too_many_connections(d, c))
		cut_connection(c, NULL);
	else if (d->n_connections > d->connections_max)
		cut_quietest_connection(d);
	else
		return;
	http_daemon_run_soon(d);
}

static void on_connection_change(void *owner, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct http_connection *c = *context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		track_connection(owner, connection, context);
		return;
	}
	if (!c)
		return;
	if (!c->ended)
		loop_remove(c->daemon->loop, &c->source);
	TAILQ_REMOVE(&c->daemon->connections, c, link);
	c->daemon->n_connections--;
	free(c);
}

struct http_connection *http_connection_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? *(struct http_connection **)info : NULL;
}

static void on_deadline_tick(void *owner)
{
	struct http_daemon     *d   = owner;
	int64_t                 now = loop_now_ms();
	struct http_connection *c;

	TAILQ_FOREACH(c, &d->connections, link)
		if (c->until_ms && c->until_ms <= now && !c->cut)
			cut_connection(c, "slow");
	if (d->events->tick)
		d->events->tick(d->owner);
	loop_timer_set(d->loop, &d->tick, TICK_MS);
}

/* --- open and close --- */

/* %XX in a path is not decoded: a path has one spelling, and no %00 that would end it. */
static size_t keep_url_escapes(void *owner, struct MHD_Connection *connection, char *text)
{
	(void)owner, (void)connection;
	return strlen(text);
}

/* 16 more connections than the limit are accepted, until others have been closed for them. */
int http_daemon_open(struct http_daemon *d, int listener, size_t memory, struct err *e)
{
	const union MHD_DaemonInfo *info;

	TAILQ_INIT(&d->connections);
	d->mhd = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, d->events->request, d->owner,
				  MHD_OPTION_LISTEN_SOCKET, listener,
				  MHD_OPTION_CONNECTION_LIMIT, (unsigned)d->connections_max + 16,
				  MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory,
				  MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENT_S,
				  MHD_OPTION_STRICT_FOR_CLIENT, 1,
				  MHD_OPTION_UNESCAPE_CALLBACK, keep_url_escapes, NULL,
				  MHD_OPTION_NOTIFY_CONNECTION, on_connection_change, d,
				  MHD_OPTION_NOTIFY_COMPLETED, d->events->completed, d->owner,
				  MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
				  MHD_OPTION_END);
	info = d->mhd ? MHD_get_daemon_info(d->mhd, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info)
		return err_set(e, ERR_SETUP, "libmicrohttpd does not start: %s", strerror(errno));
	d->source = (struct loop_source){ .fd = info->epoll_fd, .ready = run_mhd_daemon, .owner = d };
	d->timer  = (struct loop_timer){ .due = run_mhd_daemon, .owner = d };
	d->tick   = (struct loop_timer){ .due = on_deadline_tick, .owner = d };
	if (loop_add(d->loop, &d->source, e) < 0)
		return -1;
	loop_timer_set(d->loop, &d->tick, TICK_MS);
	return 0;
}

void http_daemon_close(struct http_daemon *d)
{
	if (!d->mhd)
		return;
	loop_timer_clear(d->loop, &d->timer);
	loop_timer_clear(d->loop, &d->tick);
	loop_remove(d->loop, &d->source);
	MHD_stop_daemon(d->mhd);
	d->mhd = NULL;
}

/* --- the address that a client calls --- */

bool http_parse_authority_host(const char *text, char name[256])
{
	bool        six  = *text == '[';
	const char *end  = six ? strchr(text, ']') : text + strcspn(text, ":"), *port = end ? end + six : NULL;
	size_t      len  = end ? (size_t)(end - text) - six : 0;

	if (!len || len >= 256 || (*port && *port != ':'))
		return false;
	if (*port && (strlen(port) > 6 || strspn(port + 1, "0123456789") != strlen(port + 1)))
		return false;
	memcpy(name, text + six, len);
	name[len] = '\0';
	return true;
}
