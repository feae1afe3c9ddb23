#define _GNU_SOURCE
#include "proxy_exchange.h"

#include "proxy.h"
#include "proxy_port.h"
#include "server_reply.h"
#include "request_body.h"

#include <stdio.h>
#include <sys/epoll.h>

struct exchange {
	struct request_body body;
	bool                keeps;  /* the program may send another request */
	size_t              counted; /* bytes behind the last request, which the flow has counted */
	bool                is_again; /* this is not the first request over the connection to the server */
	struct reply        reply;
};
_Static_assert((int)FLOW_ROOM >= (int)REPLY_ROOM, "a filter has room for a reply");

/* --- bytes that are held back --- */

static void set_held_deadline(struct connection *c)
{
	struct deadlines *all = &connection_proxy(c)->deadlines;

	if (reply_holds_bytes(&c->exchange->reply))
		deadline_set(all, &c->held, DEADLINE_HELD);
	else
		deadline_clear(all, &c->held);
}

/* The server pauses. If bytes wait for the program, or the reply waits for the run's rate, it is the program that is
 * slow, and more may come. */
static void flush_held_reply(void *owner)
{
	struct connection *c = owner;
	struct flow       *f = &c->down;

	if (f->is_ended || f->is_closed)
		return;
	if (!f->wait || buffer_left(&f->out) || buffer_left(&f->in) ||
	    (f->out.room < FLOW_ROOM && !buffer_make(&f->out, FLOW_ROOM))) {
		set_held_deadline(c);
		return;
	}
	f->out.len = reply_flush_held(&c->exchange->reply, f->out.at);
	c->wake(c);
}

/* --- the body, up --- */

static bool pass_request_body(void *owner, struct flow *f)
{
	struct exchange *x     = owner;
	size_t           taken = 0, made = 0;
	struct span      in = { buffer_left(&f->in) ? buffer_at(&f->in) : "", buffer_left(&f->in) };

	if (!request_body_copy_step(&x->body, in, f->out.at, f->out.room, &taken, &made))
		return false;
	buffer_take(&f->in, taken);
	f->out.len = made;
	if (x->body.is_done)
		f->is_ended = true;
	return x->body.is_done || !f->is_ended || taken || made; /* false: end of file before the end of the body */
}

/* --- the reply, down --- */

static bool is_tunnel(const struct connection *c)
{
	return !c->up.filter;
}

static bool pass_reply(void *owner, struct flow *f)
{
	struct connection *c     = owner;
	struct reply      *r     = &c->exchange->reply;
	struct span        in    = { buffer_left(&f->in) ? buffer_at(&f->in) : "", buffer_left(&f->in) };
	size_t             taken = 0, made = 0;

	if (!reply_step(r, in, f->is_ended, f->out.at, f->out.room, &taken, &made))
		return false;
	buffer_take(&f->in, taken);
	f->out.len = made;
	f->is_ended |= r->is_done;
	if (r->has_switched && !is_tunnel(c)) {
		/* the server agreed to the upgrade: from now on all bytes of the program go up */
		struct buffer early = c->up.in;

		f->keeps_receiver_open = false;
		c->up.in               = (struct buffer){ 0 };
		flow_done(&connection_proxy(c)->pipes, &c->up);
		flow_init(&c->up, &c->client, &c->server, false);
		flow_put_first_bytes(&c->up, &early);
	}
	if (!f->is_ended && buffer_left(&f->in) == 0 && reply_passes_unread(r, &f->left))
		f->filter = NULL;
	set_held_deadline(c);
	return true;
}

static void await_next_request(struct connection *c);
static void read_request(struct connection *c);

/* --- both at once --- */

static bool server_is_ready(const struct connection *c)
{
	return !c->server.tls || tls_end_is_ready(c->server.tls);
}

static void fail_for_server(struct connection *c)
{
	bool is_untrusted = c->server.tls && tls_end_is_untrusted(c->server.tls);

	if (c->down.passed == 0 && (is_untrusted || !server_is_ready(c))) {
		connection_fail(c, is_untrusted ? NET_REASON_UPSTREAM_TLS : NET_REASON_UNREACHABLE);
		return;
	}
	if (c->down.passed == 0)
		report_line_close(&c->line, NET_VERDICT_FAILED, NET_REASON_RESET);
	connection_close_and_free(c, true); /* a reset shows the program that the reply is incomplete */
}

/* False: the connection has ended. A failed write of the body does not end it: a server may reply, and close, before it
 * has read the body. */
static bool exchange_pump(struct connection *c, struct flow *f)
{
	enum net_reason reason;

	switch (flow_pump(c, f, &reason)) {
	case FLOW_WAITS:
	case FLOW_CLOSED:
		return true;
	case FLOW_STOPPED:
		connection_refuse(c, reason);
		return false;
	case FLOW_BAD:
		if (!f->is_down) {
			connection_refuse(c, NET_REASON_BAD_REQUEST);
		} else if (c->down.passed == 0) {
			connection_fail(c, NET_REASON_BAD_REPLY);
		} else {
			report_line_close(&c->line, NET_VERDICT_FAILED, NET_REASON_BAD_REPLY);
			connection_close_and_free(c, true);
		}
		return false;
	case FLOW_BROKEN:
		break;
	}
	if (!c->exchange) {
		connection_close_and_free(c, true); /* a reset shows the other side that it was cut off */
		return false;
	}
	if (f == &c->up && f->failed == &c->server && !is_tunnel(c)) {
		f->is_closed = true;
		return true;
	}
	if (f->failed == &c->server)
		fail_for_server(c);
	else
		connection_close_and_free(c, true);
	return false;
}

static bool may_take_next_request(const struct connection *c)
{
	const struct exchange *x = c->exchange;

	return x->keeps && !x->reply.closes && !x->reply.has_switched && (x->reply.is_done || c->down.left == 0) &&
	       x->body.is_done && c->up.is_closed && buffer_left(&c->up.out) == 0 && !c->up.failed &&
	       buffer_left(&c->down.in) == 0 && !c->is_half_closed;
}

static void exchange_continue(struct connection *c)
{
	/* the TLS handshake counts as dialing; a reply may take long */
	if (c->deadline.kind == DEADLINE_DIAL && server_is_ready(c))
		connection_set_deadline(c, DEADLINE_IDLE);
	if (!c->down.is_closed || (is_tunnel(c) && !c->up.is_closed))
		flow_watch_events(c, &c->up, &c->down);
	else if (!c->exchange)
		connection_close_and_free(c, false);
	else if (may_take_next_request(c))
		await_next_request(c);
	else if (c->up.failed && c->down.passed == 0)
		fail_for_server(c); /* the failed write took the error of the socket, so reading found an end of file */
	else
		connection_drain(c);
}

/* A read from the server can unblock the flow up in two ways: it completes the TLS handshake, or the server agrees to
 * an upgrade. */
static int count_open_gates(const struct connection *c)
{
	return server_is_ready(c) + is_tunnel(c);
}

/* The flow up is pumped after that: it may have waited for bytes that the flow down has read, and no later event may
 * wake it. */
static void pump_server_to_client(struct connection *c)
{
	int before = count_open_gates(c);

	if (exchange_pump(c, &c->down) && (count_open_gates(c) == before || exchange_pump(c, &c->up)))
		exchange_continue(c);
}

static void pump_ready_side(struct connection *c, const struct side *side)
{
	if (flow_is_waiting_for_side(&c->up, side) && !exchange_pump(c, &c->up))
		return;
	if (flow_is_waiting_for_side(&c->down, side))
		pump_server_to_client(c);
	else
		exchange_continue(c);
}

static void exchange_on_client(struct connection *c)
{
	connection_note_half_close(c);
	pump_ready_side(c, &c->client);
}

static void exchange_on_server(struct connection *c)
{
	pump_ready_side(c, &c->server);
}

static void pump_both_ways(struct connection *c)
{
	if (exchange_pump(c, &c->up))
		pump_server_to_client(c);
}

void tunnel_start(struct connection *c)
{
	c->on_client = exchange_on_client;
	c->on_server = exchange_on_server;
	c->wake      = pump_both_ways;
	report_line_add_bytes_out(&c->line, buffer_left(&c->received));
	run_spend_bytes(c->run, buffer_left(&c->received));
	flow_put_first_bytes(&c->up, &c->received);
	connection_set_deadline(c, DEADLINE_IDLE);
	pump_both_ways(c);
}

/* --- the request --- */

static bool host_has_secrets(const struct connection *c)
{
	return c->carry == CARRY_INSIDE && secret_exists_for_host(connection_proxy(c)->config, c->host, c->port);
}

/* ret has room for the longest head and all headers of secrets. False: no memory. */
static bool build_request_head(struct connection *c, const struct request_head *head, struct buffer *ret)
{
	char                authority[HTTP_AUTHORITY_MAX];
	struct request_set  set[NET_SECRETS_MAX];
	struct net_target   target = { c->host, c->port, c->scheme };
	struct request_edit edit = { .authority = authority,
		.is_judged = permission_needs_inspection(&c->run->policy, &target) };

	http_print_authority(c->host, c->port == (c->scheme == NET_SCHEME_HTTPS ? 443 : 80) ? 0 : c->port, authority);
	if (host_has_secrets(c)) {
		edit.set         = set;
		edit.sets        = secret_headers(connection_proxy(c)->config, c->host, c->port, set);
		edit.plain_reply = true;
		report_line_mark_secret(&c->line);
	}
	if (!buffer_make(ret, HTTP_HEAD_MAX + NET_HOST_MAX + 1024 +
				      edit.sets * (NET_SECRET_HEADER_MAX + NET_SECRET_VALUE_MAX)))
		return false;
	ret->len = request_head_write(head, &edit, ret->at, ret->room);
	return ret->len > 0;
}

static enum net_reason judge_request(const struct connection *c, const struct request_head *head)
{
	struct net_target target = { c->host, c->port, c->scheme };
	enum net_reason   reason;
	char              path[HTTP_HEAD_MAX + 1];

	if (head->form == REQUEST_AUTHORITY || (head->form == REQUEST_ABSOLUTE && head->scheme != c->scheme))
		return NET_REASON_BAD_REQUEST;
	if (strcmp(head->host, c->host) != 0 || (head->port && head->port != c->port))
		return NET_REASON_OTHER_NAME;
	(void)snprintf(path, sizeof path, "%.*s", (int)head->path.len, head->path.at);
	reason = permission_judge_request(&c->run->policy, &target, head->method, path, c->dial.is_judged_private);
	if (reason != NET_REASON_NONE)
		return reason;
	return host_has_secrets(c) && !secret_allows_method(head) ? NET_REASON_REQUEST : NET_REASON_NONE;
}

static void send_request(struct connection *c, const struct request_head *head)
{
	struct exchange *x = c->exchange;
	struct buffer    first;
	size_t           fresh;

	first = (struct buffer){ 0 };
	if (!build_request_head(c, head, &first)) {
		buffer_free(&first);
		connection_fail(c, NET_REASON_NO_MEMORY);
		return;
	}
	request_body_init(&x->body, head);
	reply_init(&x->reply, host_has_secrets(c) ? connection_proxy(c)->config : NULL, c->host, c->port,
		    head->method == NET_METHOD_HEAD, head->upgrades);
	x->keeps = head->keeps;
	fresh = buffer_left(&c->received) - x->counted;
	report_line_add_bytes_out(&c->line, fresh);
	run_spend_bytes(c->run, fresh);
	buffer_take(&c->received, head->len);
	c->up.filter   = pass_request_body;
	c->up.owner    = x;
	c->up.is_ended = x->body.is_done;
	c->up.keeps_receiver_open = true; /* a server may take a half-closed connection for a closed one */
	flow_put_first_bytes(&c->up, &c->received);
	c->up.out         = first;
	c->down.owner     = c;
	c->down.filter    = pass_reply;
	c->down.keeps_receiver_open = true; /* connection_drain() ends it, or another reply follows */
	c->watches_server = false;
	c->on_client      = exchange_on_client;
	c->on_server      = exchange_on_server;
	c->wake           = pump_both_ways;
	connection_set_deadline(c, x->is_again ? DEADLINE_IDLE : DEADLINE_DIAL);
	pump_both_ways(c);
}

/* --- one request after the other --- */

/* Between two requests a server sends nothing but what TLS needs. False: it has ended the connection, or sent something
 * unasked. */
static bool server_is_idle(struct connection *c)
{
	struct proxy    *proxy  = connection_proxy(c);
	size_t           moved  = 0;
	enum tls_outcome result = side_read(&c->server, proxy->scratch, sizeof proxy->scratch, &moved);

	return result == TLS_WANT_READ || result == TLS_WANT_WRITE;
}

static void on_server_between_requests(struct connection *c)
{
	if (!server_is_idle(c))
		connection_close_and_free(c, false);
}

/*
 * The request is read in a turn of the loop of its own: with all replies there already, each would otherwise begin the
 * next one. The program's socket can be written, so the turn comes at once; bytes that TLS or `received` has would
 * cause no event.
 */
static void await_next_request(struct connection *c)
{
	struct proxy *proxy = connection_proxy(c);

	c->received          = c->up.in;
	c->up.in             = (struct buffer){ 0 };
	c->exchange->counted = buffer_left(&c->received);
	if (buffer_left(&c->received) == 0)
		buffer_free(&c->received);
	flow_done(&proxy->pipes, &c->up);
	flow_done(&proxy->pipes, &c->down);
	flow_init(&c->up, &c->client, &c->server, false);
	flow_init(&c->down, &c->server, &c->client, true);
	deadline_clear(&proxy->deadlines, &c->held);
	c->wake               = NULL;
	c->looked             = 0;
	c->watches_server     = true;
	c->exchange->is_again = true;
	c->on_client          = read_request;
	c->on_server          = on_server_between_requests;
	connection_set_deadline(c, DEADLINE_KEPT);
	connection_watch_events(c, EPOLLIN | EPOLLOUT, EPOLLIN);
}

/* To a proxy, a program sends requests to several hosts over one connection. */
static bool is_for_other_host(const struct connection *c, const struct request_head *head)
{
	return c->via == VIA_REQUEST && head->form == REQUEST_ABSOLUTE && head->scheme == NET_SCHEME_HTTP &&
	       (strcmp(head->host, c->host) != 0 || (head->port ? head->port : 80) != c->port);
}

static void serve_or_refuse_request(struct connection *c, const struct request_head *head)
{
	enum net_reason reason;

	if (c->exchange->is_again && is_for_other_host(c, head)) {
		connection_start_over(c);
		proxy_port_read_next_request(c);
		return;
	}
	reason = judge_request(c, head);
	if (reason == NET_REASON_NONE && c->exchange->is_again && !server_is_idle(c))
		connection_close_and_free(c, false); /* as if the server had just closed it: programs try again */
	else if (reason == NET_REASON_NONE)
		send_request(c, head);
	else
		connection_refuse(c, reason);
}

static void read_request(struct connection *c)
{
	struct request_head head;
	enum tls_outcome    result;

	switch (connection_read_request(c, &head, &result)) {
	case HTTP_DONE:
		serve_or_refuse_request(c, &head);
		return;
	case HTTP_BAD:
		connection_refuse(c, NET_REASON_BAD_REQUEST);
		return;
	case HTTP_MORE:
		break;
	}
	if (result == TLS_FAILED && c->client.tls && !tls_end_is_ready(c->client.tls))
		connection_fail(c, NET_REASON_PROGRAM_TLS);
	else if (result == TLS_END && buffer_left(&c->received) == 0)
		connection_close_and_free(c, false);
	else if (result == TLS_END || result == TLS_FAILED)
		connection_refuse(c, NET_REASON_BAD_REQUEST);
	else if (buffer_left(&c->received) == 0)
		buffer_free(&c->received); /* until a request begins, an idle connection costs no buffer */
	else if (c->deadline.kind != DEADLINE_REQUEST)
		connection_set_deadline(c, DEADLINE_REQUEST); /* one that has begun has little time for its end */
}

/* --- TLS that ends here --- */

static bool create_tls_ends(struct connection *c)
{
	struct tls_authority *authority = connection_proxy(c)->authority;

	if (!authority)
		return false;
	c->client.tls = tls_end_serve(authority, c->client.source.fd, c->host, buffer_at(&c->received),
				      buffer_left(&c->received));
	c->server.tls = tls_end_dial(authority, c->server.source.fd, c->host);
	buffer_free(&c->received);
	return c->client.tls && c->server.tls;
}

void exchange_start(struct connection *c)
{
	c->exchange = calloc(1, sizeof *c->exchange);
	if (!c->exchange || (c->carry == CARRY_INSIDE && !create_tls_ends(c))) {
		connection_fail(c, c->exchange && !connection_proxy(c)->authority ? NET_REASON_REQUEST
										  : NET_REASON_NO_MEMORY);
		return;
	}
	c->held         = (struct deadline){ .due = flush_held_reply, .owner = c };
	c->awaits_reply = true;
	c->looked       = 0;
	c->on_client    = read_request;
	c->on_server    = connection_reset;
	connection_set_deadline(c, DEADLINE_REQUEST);
	read_request(c);
}
