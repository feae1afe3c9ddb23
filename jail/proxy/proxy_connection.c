#define _GNU_SOURCE
#include "proxy_connection.h"

#include "proxy.h"
#include "refusal_text.h"
#include "socket_room.h"
#include "socks.h"

#include <stdio.h>
#include <sys/epoll.h>

enum { DRAIN_MAX = 256 << 20 };

struct proxy *connection_proxy(const struct connection *c)
{
	return c->run->proxy;
}

void connection_watch_events(struct connection *c, uint32_t client, uint32_t server)
{
	side_watch_events(&c->run->loop, &c->client, client);
	side_watch_events(&c->run->loop, &c->server, server);
}

void connection_set_deadline(struct connection *c, enum deadline_kind kind)
{
	deadline_set(&connection_proxy(c)->deadlines, &c->deadline, kind);
}

/* --- events --- */

static void on_client_ready(void *owner)
{
	struct connection *c = owner;

	c->on_client(c);
}

static void on_server_ready(void *owner)
{
	struct connection *c = owner;

	c->on_server(c);
}

static void on_connection_deadline(void *owner)
{
	struct connection *c = owner;

	switch (c->deadline.kind) {
	case DEADLINE_REQUEST:
		connection_refuse(c, NET_REASON_TOO_SLOW);
		return;
	case DEADLINE_TRY:
		c->try_again(c);
		return;
	case DEADLINE_DIAL:
		connection_fail(c, c->dial.n ? NET_REASON_UNREACHABLE : NET_REASON_UNRESOLVED);
		return;
	case DEADLINE_KEPT:
		connection_close_and_free(c, false);
		return;
	case DEADLINE_IDLE:
	case DEADLINE_HALF:
	case DEADLINE_DRAIN:
	case DEADLINE_HELD:
	case DEADLINE_KINDS:
		connection_close_and_free(c, c->deadline.kind != DEADLINE_DRAIN);
		return;
	}
}

struct connection *proxied_connection_create(struct run *run, int fd, void (*next)(struct connection *c))
{
	struct connection *c = calloc(1, sizeof *c);

	if (!c) {
		struct side lost = { .source = { .fd = fd } };

		side_close(&run->loop, &lost, true);
		return NULL;
	}
	c->run      = run;
	c->next     = next;
	c->deadline = (struct deadline){ .due = on_connection_deadline, .owner = c };
	side_open(&c->client, fd, on_client_ready, c);
	side_open(&c->server, -1, on_server_ready, c);
	flow_init(&c->up, &c->client, &c->server, false);
	flow_init(&c->down, &c->server, &c->client, true);
	LIST_INSERT_HEAD(&run->connections, c, link);
	run->open++;
	run->proxy->open++;
	socket_buffers_set(fd, SOCKET_OF_PROGRAM, run->proxy->open);
	return c;
}

/* --- from step to step --- */

void connection_set_host(struct connection *c, const char *host, uint16_t port, bool is_address, enum net_scheme scheme)
{
	struct net_target target = { c->host, port, scheme };

	(void)snprintf(c->host, sizeof c->host, "%s", host);
	c->port       = port;
	c->is_address = is_address;
	c->scheme     = scheme;
	c->reached    = REACHED_NAME;
	if (!report_line_open(&c->line, c->run->report, c->host, port)) {
		connection_close_and_free(c, true); /* the server's END is on its way */
		return;
	}
	if (scheme == NET_SCHEME_ANY && permission_is_raw_tcp(&c->run->policy, c->host, port)) {
		c->scheme = target.scheme = NET_SCHEME_TCP;
		c->carry                  = CARRY_TUNNEL;
	}
	c->permission = permission_find(&c->run->policy, &target);
	if (c->permission.reason != NET_REASON_NONE)
		connection_refuse(c, c->permission.reason);
	else
		c->next(c);
}

enum tls_outcome connection_read(struct connection *c, size_t max)
{
	enum tls_outcome result = TLS_FAILED;
	size_t           moved  = 0;

	if (!buffer_grow(&c->received, max))
		return TLS_FAILED;
	result = side_read(&c->client, c->received.at + c->received.len, c->received.room - c->received.len, &moved);
	if (result == TLS_MOVED)
		c->received.len += moved;
	else if (result == TLS_WANT_READ || result == TLS_WANT_WRITE)
		connection_watch_events(c, result == TLS_WANT_READ ? EPOLLIN : EPOLLOUT, c->watches_server ? EPOLLIN :
					0);
	return result;
}

bool connection_has_line(struct connection *c)
{
	size_t seen = c->looked, n = buffer_left(&c->received);

	c->looked = n;
	return n >= HTTP_HEAD_MAX || (n > seen && memchr(buffer_at(&c->received) + seen, '\n', n - seen));
}

enum http_outcome connection_read_request(struct connection *c, struct request_head *head, enum tls_outcome *result)
{
	enum http_outcome outcome = HTTP_MORE;
	const char       *why;

	do {
		if (connection_has_line(c))
			outcome = request_head_parse(buffer_at(&c->received), buffer_left(&c->received), head, &why);
		if (outcome == HTTP_MORE)
			*result = connection_read(c, HTTP_HEAD_MAX);
	} while (outcome == HTTP_MORE && *result == TLS_MOVED);
	return outcome;
}

/* --- ends --- */

/* Unread bytes would turn close() into a reset, and the program could lose what was written to it. */
static void drain_client(struct connection *c)
{
	struct proxy    *proxy = connection_proxy(c);
	size_t           moved;
	enum tls_outcome result = side_read(&c->client, proxy->scratch, sizeof proxy->scratch, &moved);

	if (result == TLS_END || result == TLS_FAILED)
		connection_close_and_free(c, false);
	else if (result == TLS_MOVED && (c->drained += moved) < DRAIN_MAX)
		connection_set_deadline(c,
					DEADLINE_DRAIN); /* a large body, of which the server did not want the rest */
}

void connection_drain(struct connection *c)
{
	c->on_client = drain_client;
	c->wake      = NULL;
	if (c->reached >= REACHED_NAME)
		report_line_close(&c->line, NET_VERDICT_DONE, NET_REASON_NONE);
	side_close(&c->run->loop, &c->server, false);
	(void)side_finish(&c->client);
	connection_watch_events(c, EPOLLIN, 0);
	connection_set_deadline(c, DEADLINE_DRAIN);
}

void connection_close_and_free(struct connection *c, bool is_reset)
{
	struct proxy *proxy = connection_proxy(c);

	if (c->reached >= REACHED_NAME)
		report_line_close(&c->line, NET_VERDICT_DONE, NET_REASON_NONE);
	lookup_detach(c->dial.lookup);
	c->dial.lookup = NULL;
	deadline_clear(&proxy->deadlines, &c->deadline);
	deadline_clear(&proxy->deadlines, &c->held);
	free(c->exchange);
	side_close(&c->run->loop, &c->client, is_reset);
	side_close(&c->run->loop, &c->server, is_reset);
	flow_done(&proxy->pipes, &c->up);
	flow_done(&proxy->pipes, &c->down);
	buffer_free(&c->received);
	LIST_REMOVE(c, link);
	c->run->open--;
	proxy->open--;
	free(c);
}

void connection_reset(struct connection *c)
{
	connection_close_and_free(c, true);
}

void connection_start_over(struct connection *c)
{
	report_line_close(&c->line, NET_VERDICT_DONE, NET_REASON_NONE);
	side_close(&c->run->loop, &c->server, false);
	side_open(&c->server, -1, on_server_ready, c);
	free(c->exchange);
	c->exchange       = NULL;
	c->carry          = CARRY_UNKNOWN;
	c->reached        = REACHED_NOTHING;
	c->watches_server = false;
	c->dial           = (struct dial){ 0 };
	c->looked         = 0;
}

static void fail_without_client(struct connection *c)
{
	report_line_close(&c->line, NET_VERDICT_FAILED, NET_REASON_UNREACHABLE);
	connection_close_and_free(c, true);
}

/*
 * A program that has shut down its sending side is not gone: it may have sent all that it has to send. But if it waits
 * for the reply to CONNECT or SOCKS5 and has sent nothing more, the shutdown means that it gave up.
 */
void connection_await_server(struct connection *c, uint32_t events)
{
	bool is_silent = (c->via == VIA_CONNECT || c->via == VIA_SOCKS) && buffer_left(&c->received) == 0;

	c->on_client = fail_without_client;
	connection_watch_events(c, EPOLLERR | (is_silent ? EPOLLRDHUP : 0u), events);
}

void connection_note_half_close(struct connection *c)
{
	if (!c->up.is_closed || c->is_half_closed || !side_is_half_closed(&c->client))
		return;
	c->is_half_closed = true;
	connection_set_deadline(c, DEADLINE_HALF);
}

/* --- refusals --- */

/* Ends the connection; after a reply, the program gets time to read it. */
static void send_refusal(struct connection *c, enum net_reason reason)
{
	char             text[REFUSAL_MAX];
	size_t           len, moved = 0;
	enum tls_outcome result;

	if (c->awaits_reply && c->down.passed == 0)
		len = refusal_print(reason, c->host, c->port, text, sizeof text);
	else if (c->via == VIA_SOCKS && c->reached < REACHED_CONFIRMED)
		len = socks_print_refusal(reason, text);
	else
		len = 0;
	result = len ? side_write(&c->client, text, len, &moved) : TLS_FAILED;
	if (result == TLS_MOVED && moved == len)
		connection_drain(c);
	else
		connection_close_and_free(c, true);
}

static void refuse_with_verdict(struct connection *c, enum net_verdict verdict, enum net_reason reason)
{
	if (c->reached >= REACHED_NAME)
		report_line_close(&c->line, verdict, reason);
	else
		report_refusal(c->run->report, "", c->port, reason);
	lookup_detach(c->dial.lookup);
	c->dial.lookup = NULL;
	side_close(&c->run->loop, &c->server, true);
	send_refusal(c, reason);
}

void connection_refuse(struct connection *c, enum net_reason reason)
{
	refuse_with_verdict(c, NET_VERDICT_REFUSED, reason);
}

void connection_fail(struct connection *c, enum net_reason reason)
{
	refuse_with_verdict(c, NET_VERDICT_FAILED, reason);
}
