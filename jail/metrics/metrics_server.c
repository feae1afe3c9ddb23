#define _GNU_SOURCE
#include "metrics_server.h"

#include "exposition.h"
#include "fd.h"
#include "metrics_page.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define MEMORY_MAX (16 * KIB) /* for each connection: the head of its request, and the buffer of its answer */
enum { WAIT_MAX_MS = 60000, TICK_MS = 500, TURNS_MAX = 8 };

/* --- the page --- */

static unsigned print(FILE *out)
{
	struct err e;

	if (metrics_page_print(out, METRICS_BRIGD_MS, &e) == 0)
		return MHD_HTTP_OK;
	(void)fprintf(out, "%s\n", e.text);
	return MHD_HTTP_SERVICE_UNAVAILABLE;
}

/* Requests within METRICS_FRESH_MS get the same page. */
static void refresh(struct metrics_server *s)
{
	int64_t now  = loop_now_ms();
	char   *text = NULL;
	size_t  len  = 0;
	FILE   *out;

	if (s->page && now - s->page_ms < METRICS_FRESH_MS)
		return;
	out = open_memstream(&text, &len);
	if (!out)
		return;
	s->status = print(out);
	(void)fclose(out);
	free(s->page);
	s->page    = text;
	s->page_ms = loop_now_ms();
}

/* --- requests --- */

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type, const char *text)
{
	struct MHD_Response *r    = MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result      done = MHD_NO;

	if (!r)
		return MHD_NO;
	if (MHD_add_response_header(r, "Content-Type", type) == MHD_YES && MHD_add_response_header(r, "Connection", "close") == MHD_YES &&
	    (status != MHD_HTTP_METHOD_NOT_ALLOWED || MHD_add_response_header(r, "Allow", "GET, HEAD") == MHD_YES))
		done = MHD_queue_response(connection, status, r);
	MHD_destroy_response(r);
	return done;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *text)
{
	return answer(connection, status, "text/plain; charset=utf-8", text);
}

static bool has_body(struct MHD_Connection *connection)
{
	const char *len = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");

	return (len && strcmp(len, "0") != 0) || MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Transfer-Encoding");
}

static enum MHD_Result respond(struct metrics_server *s, struct MHD_Connection *connection)
{
	refresh(s);
	if (!s->page)
		return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
	return s->status == MHD_HTTP_OK ? answer(connection, s->status, EXPOSITION_TYPE, s->page) : refuse(connection, s->status, s->page);
}

static bool is_address(const char *text)
{
	char            plain[INET6_ADDRSTRLEN] = "";
	unsigned char   bytes[16];
	size_t          len;

	if (*text != '[')
		return inet_pton(AF_INET, text, bytes) == 1;
	len = strlen(text) - 1;
	if (text[len] != ']' || len - 1 >= sizeof plain)
		return false;
	memcpy(plain, text + 1, len - 1);
	return inet_pton(AF_INET6, plain, bytes) == 1;
}

/*
 * An address, localhost or the name of this host. By any other name it is asked by a page of that name in a browser, which was made to lead here
 * (DNS rebinding). HTTP/1.0 has no Host.
 */
static bool is_own_host(const char *host)
{
	char        name[256] = "", own[256] = "";
	const char *colon = host ? strrchr(host, ':') : NULL;

	if (!host)
		return true;
	if (strlen(host) >= sizeof name)
		return false;
	memcpy(name, host, strlen(host) + 1);
	if (colon && !strchr(colon, ']'))
		name[colon - host] = 0;
	return is_address(name) || strcasecmp(name, "localhost") == 0 || (gethostname(own, sizeof own - 1) == 0 && strcasecmp(name, own) == 0);
}

/* Called when the head of the request is there. The answer closes the connection, whatever the client sends after the head. */
static enum MHD_Result on_request(void *owner, struct MHD_Connection *connection, const char *path, const char *method, const char *version,
				  const char *body, size_t *body_len, void **context)
{
	(void)version, (void)body, (void)body_len, (void)context;
	if (!is_own_host(MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host")))
		return refuse(connection, MHD_HTTP_FORBIDDEN, "The Host of the request is none of this server's: ask by an address, localhost or the name of this host\n");
	if (strcmp(path, "/metrics") != 0)
		return refuse(connection, MHD_HTTP_NOT_FOUND, "There is /metrics and nothing else\n");
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD, and nothing else\n");
	if (has_body(connection))
		return refuse(connection, MHD_HTTP_BAD_REQUEST, "A request for figures has no body\n");
	return respond(owner, connection);
}

/* Does not decode %xx in the path: "/metrics" has one spelling. */
static size_t keep_escapes(void *owner, struct MHD_Connection *connection, char *text)
{
	(void)owner, (void)connection;
	return strlen(text);
}

/* --- connections --- */

/* libmicrohttpd then reads the end of file and closes the descriptor. */
static void cut(struct scrape *c)
{
	c->cut = true;
	(void)shutdown(c->fd, SHUT_RDWR);
}

static void make_room(struct metrics_server *s)
{
	struct scrape *c;

	TAILQ_FOREACH(c, &s->scrapes, link)
		if (!c->cut) {
			cut(c);
			return;
		}
}

static void scrape_begin(struct metrics_server *s, struct MHD_Connection *connection, void **context)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct scrape                  *c    = info ? calloc(1, sizeof *c) : NULL;

	if (!c)
		return;
	*c       = (struct scrape){ .fd = info->connect_fd, .until_ms = loop_now_ms() + METRICS_SCRAPE_MS };
	*context = c;
	TAILQ_INSERT_TAIL(&s->scrapes, c, link);
	if (++s->scrapes_len > METRICS_CONNECTIONS_MAX)
		make_room(s);
}

static void scrape_end(struct metrics_server *s, struct scrape *c)
{
	if (!c)
		return;
	TAILQ_REMOVE(&s->scrapes, c, link);
	s->scrapes_len--;
	free(c);
}

static void on_connection(void *owner, struct MHD_Connection *connection, void **context, enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		scrape_begin(owner, connection, context);
	else
		scrape_end(owner, *context);
}

/* --- libmicrohttpd in our loop --- */

static void run(void *owner)
{
	struct metrics_server *s = owner;
	MHD_UNSIGNED_LONG_LONG wait;
	int                    turns = 0;
	bool                   more;

	do {
		(void)MHD_run(s->daemon);
		more = MHD_get_timeout(s->daemon, &wait) == MHD_YES;
	} while (more && wait == 0 && ++turns < TURNS_MAX);
	loop_timer_set(&s->loop, &s->timer, !more || wait > WAIT_MAX_MS ? WAIT_MAX_MS : wait ? (int64_t)wait : 1);
}

static void on_tick(void *owner)
{
	struct metrics_server *s   = owner;
	int64_t                now = loop_now_ms();
	struct scrape         *c;

	TAILQ_FOREACH(c, &s->scrapes, link)
		if (!c->cut && c->until_ms <= now)
			cut(c);
	loop_timer_set(&s->loop, &s->tick, TICK_MS);
}

static void on_signal(void *owner)
{
	((struct metrics_server *)owner)->ends = true;
}

/* --- from beginning to end --- */

static int open_signals(struct metrics_server *s, struct err *e)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signals = (struct loop_source){ signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), on_signal, s };
	return s->signals.fd < 0 ? err_sys(e, "signalfd") : loop_add(&s->loop, &s->signals, e);
}

/*
 * The limit is a few connections above METRICS_CONNECTIONS_MAX: a new one is accepted, and then the oldest is cut. libmicrohttpd closes
 * the listener when it stops.
 */
static int open_daemon(struct metrics_server *s, int listener, struct err *e)
{
	const union MHD_DaemonInfo *info;

	s->daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, s,
				     MHD_OPTION_LISTEN_SOCKET, listener,
				     MHD_OPTION_CONNECTION_LIMIT, (unsigned)METRICS_CONNECTIONS_MAX + 16,
				     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_MAX,
				     MHD_OPTION_STRICT_FOR_CLIENT, 1,
				     MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,
				     MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
				     MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
				     MHD_OPTION_END);
	info = s->daemon ? MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info)
		return err_set(e, ERR_SETUP, "libmicrohttpd does not start: %s", strerror(errno));
	s->source = (struct loop_source){ info->epoll_fd, run, s };
	s->timer  = (struct loop_timer){ .due = run, .owner = s };
	s->tick   = (struct loop_timer){ .due = on_tick, .owner = s };
	if (loop_add(&s->loop, &s->source, e) < 0)
		return -1;
	loop_timer_set(&s->loop, &s->tick, TICK_MS);
	return 0;
}

static void close_all(struct metrics_server *s)
{
	if (s->daemon)
		MHD_stop_daemon(s->daemon);
	fd_closep(&s->signals.fd);
	loop_close(&s->loop);
	free(s->page);
}

int metrics_serve(struct metrics_listener *l, struct err *e)
{
	struct metrics_server s = { .loop = { .fd = -1 }, .signals = { .fd = -1 } };
	int                   r;

	TAILQ_INIT(&s.scrapes);
	r = loop_open(&s.loop, e) < 0 || open_signals(&s, e) < 0 || open_daemon(&s, l->fd, e) < 0 ? -1 : 0;
	if (s.daemon)
		fd_take(&l->fd);
	if (r == 0)
		fprintf(stderr, "brig metrics: serving %s\n", l->name);
	while (r == 0 && !s.ends)
		r = loop_turn(&s.loop, -1, e) < 0 ? -1 : 0;
	close_all(&s);
	return r;
}
