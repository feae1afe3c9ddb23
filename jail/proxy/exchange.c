#define _GNU_SOURCE
#include "exchange.h"

#include "proxy.h"
#include "masked_reply.h"
#include "request_body.h"

#include <stdio.h>
#include <sys/epoll.h>

struct exchange {
	struct request_body body;
	bool                upgrades;    /* until the server's answer is known, nothing but the request goes up */
	bool                has_secrets; /* reply is in use */
	struct reply        reply;
};

/* --- bytes that are held back --- */

static void hold(struct connection *c)
{
	struct deadlines *all = &connection_proxy(c)->deadlines;

	if (reply_holds(&c->exchange->reply))
		deadline_set(all, &c->held, DEADLINE_HELD);
	else
		deadline_clear(all, &c->held);
}

/* The server pauses. If bytes wait for the program, or the reply waits for the run's rate, it is the program that is slow, and more may come. */
static void on_held(void *owner)
{
	struct connection *c = owner;
	struct flow       *f = &c->down;

	if (f->is_ended || f->is_closed)
		return;
	if (!f->wait || buffer_left(&f->out) || buffer_left(&f->in) || (!f->out.at && !buffer_make(&f->out, 2 * FLOW_BUFFER))) {
		hold(c);
		return;
	}
	f->out.len = reply_flush(&c->exchange->reply, f->out.at);
	c->wake(c);
}

/* --- the body, up --- */

static bool pass_body(void *owner, struct flow *f)
{
	struct exchange *x     = owner;
	size_t           taken = 0, made = 0;
	struct span      in = { buffer_left(&f->in) ? buffer_at(&f->in) : "", buffer_left(&f->in) };

	if (!request_body_step(&x->body, in, f->out.at, f->out.room, &taken, &made))
		return false;
	buffer_take(&f->in, taken);
	f->out.len = made;
	if (x->body.is_done)
		f->is_ended = true;
	return x->body.is_done || !f->is_ended || taken || made; /* false: end of file before the end of the body */
}

/* --- the reply, down --- */

static bool mask_reply(struct connection *c, struct flow *f)
{
	struct reply *r = &c->exchange->reply;
	struct span in    = { buffer_left(&f->in) ? buffer_at(&f->in) : "", buffer_left(&f->in) };
	size_t      taken = 0, made = 0;

	if (!reply_step(r, in, f->is_ended, f->out.at, f->out.room, &taken, &made))
		return false;
	buffer_take(&f->in, taken);
	f->out.len = made;
	f->is_ended |= r->is_done;
	hold(c);
	return true;
}

static void copy_reply(struct flow *f, size_t n)
{
	n = n < f->out.room ? n : f->out.room;
	if (n == 0)
		return;
	memcpy(f->out.at, buffer_at(&f->in), n);
	f->out.len = n;
	buffer_take(&f->in, n);
}

static bool pass_reply(void *owner, struct flow *f)
{
	struct connection *c = owner;

	if (c->exchange->has_secrets)
		return mask_reply(c, f);
	copy_reply(f, buffer_left(&f->in));
	return true;
}

/* The server agreed to the upgrade: from now on all bytes of the program go up. */
static void open_up(struct connection *c)
{
	struct buffer early = c->up.in;

	c->up.in = (struct buffer){ 0 };
	flow_done(&connection_proxy(c)->pipes, &c->up);
	flow_init(&c->up, &c->client, &c->server, false);
	flow_put(&c->up, &early);
}

/* The beginning of the reply to a request that upgrades. */
static bool pass_first_reply(void *owner, struct flow *f)
{
	struct connection *c       = owner;
	struct exchange   *x       = c->exchange;
	enum reply_outcome outcome = reply_switches(buffer_left(&f->in) ? buffer_at(&f->in) : "", buffer_left(&f->in));

	if (outcome == REPLY_MORE && !f->is_ended)
		return true;
	if (outcome == REPLY_SWITCHED) {
		reply_is_tunnel(&x->reply);
		open_up(c);
	}
	x->upgrades = false;
	f->filter   = pass_reply;
	return pass_reply(c, f);
}

/* --- both at once --- */

static bool is_tunnel(const struct connection *c)
{
	return !c->up.filter;
}

static bool server_is_ready(const struct connection *c)
{
	return !c->server.tls || tls_end_is_ready(c->server.tls);
}

static void server_failed(struct connection *c)
{
	bool is_untrusted = c->server.tls && tls_end_is_untrusted(c->server.tls);

	if (c->down.moved == 0)
		connection_fail(c, is_untrusted ? NET_REASON_UPSTREAM_TLS : NET_REASON_UNREACHABLE);
	else
		connection_end(c, true); /* a reset shows the program that the reply is incomplete */
}

/* False: the connection has ended. A failed write of the body does not end it: a server may reply, and close, before it has read the body. */
static bool pump(struct connection *c, struct flow *f)
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
		if (f->is_down)
			server_failed(c);
		else
			connection_refuse(c, NET_REASON_BAD_REQUEST);
		return false;
	case FLOW_BROKEN:
		break;
	}
	if (f == &c->up && f->failed == &c->server && !is_tunnel(c)) {
		f->is_closed = true;
		return true;
	}
	if (f->failed == &c->server)
		server_failed(c);
	else
		connection_end(c, true);
	return false;
}

static void go_on(struct connection *c)
{
	if (c->deadline.kind == DEADLINE_DIAL && server_is_ready(c)) /* the TLS handshake counts as dialing; a reply may take long */
		connection_deadline(c, DEADLINE_IDLE);
	if (c->down.is_closed && (c->up.is_closed || !is_tunnel(c)))
		connection_drain(c);
	else
		flow_want(c, &c->up, &c->down);
}

/* A read from the server can unblock the flow up in two ways: it completes the TLS handshake, or the server agrees to an upgrade. */
static int opened(const struct connection *c)
{
	return server_is_ready(c) + is_tunnel(c);
}

/* The flow up is pumped after that: it may have waited for bytes that the flow down has read, and no later event may wake it. */
static void pump_down(struct connection *c)
{
	int before = opened(c);

	if (pump(c, &c->down) && (opened(c) == before || pump(c, &c->up)))
		go_on(c);
}

static void ready(struct connection *c, const struct side *side)
{
	if (flow_waits_for(&c->up, side) && !pump(c, &c->up))
		return;
	if (flow_waits_for(&c->down, side))
		pump_down(c);
	else
		go_on(c);
}

static void on_client(struct connection *c)
{
	connection_note_half_close(c);
	ready(c, &c->client);
}

static void on_server(struct connection *c)
{
	ready(c, &c->server);
}

static void wake(struct connection *c)
{
	if (pump(c, &c->up))
		pump_down(c);
}

/* --- the request --- */

static void print_authority(const struct connection *c, char text[NET_HOST_MAX + 16])
{
	bool     is_six = strchr(c->host, ':') != NULL;
	uint16_t usual  = c->scheme == NET_SCHEME_HTTPS ? 443 : 80;
	int      n      = snprintf(text, NET_HOST_MAX + 16, "%s%s%s", is_six ? "[" : "", c->host, is_six ? "]" : "");

	if (c->port != usual)
		(void)snprintf(text + n, (size_t)(NET_HOST_MAX + 16 - n), ":%u", c->port);
}

static void set_secrets(struct connection *c, struct request_edit *edit, struct request_set set[NET_SECRETS_MAX])
{
	const struct proxy_config *config = connection_proxy(c)->config;

	if (c->carry != CARRY_INSIDE || !secret_is_for(config, c->host, c->port))
		return;
	edit->set         = set;
	edit->sets        = secret_headers(config, c->host, c->port, set);
	edit->plain_reply = true;
	reply_begin(&c->exchange->reply, config, c->host, c->port);
	c->exchange->has_secrets = true;
	report_line_secret(&c->line);
}

/* ret has room for the longest head and all headers of secrets. False: no memory. */
static bool write_head(struct connection *c, const struct request_head *head, struct buffer *ret)
{
	char                authority[NET_HOST_MAX + 16];
	struct request_set  set[NET_SECRETS_MAX];
	struct net_target   target = { c->host, c->port, c->scheme };
	struct request_edit edit   = { .authority = authority, .is_judged = permission_reads(&c->run->policy, &target) };

	print_authority(c, authority);
	set_secrets(c, &edit, set);
	if (!buffer_make(ret,
			 REQUEST_HEAD_MAX + NET_HOST_MAX + 1024 + edit.sets * (NET_SECRET_HEADER_MAX + NET_SECRET_VALUE_MAX)))
		return false;
	ret->len = request_head_write(head, &edit, ret->at, ret->room);
	return ret->len > 0;
}

static enum net_reason judge(const struct connection *c, const struct request_head *head)
{
	struct net_target target = { c->host, c->port, c->scheme };
	enum net_reason   reason;
	char              path[REQUEST_HEAD_MAX + 1];

	if (head->form == REQUEST_AUTHORITY || (head->form == REQUEST_ABSOLUTE && head->scheme != c->scheme))
		return NET_REASON_BAD_REQUEST;
	if (strcmp(head->host, c->host) != 0 || (head->port && head->port != c->port))
		return NET_REASON_OTHER_NAME;
	(void)snprintf(path, sizeof path, "%.*s", (int)head->path.len, head->path.at);
	reason = permission_of_request(&c->run->policy, &target, head->method, path, c->dial.is_judged_private);
	if (reason != NET_REASON_NONE)
		return reason;
	if (c->carry == CARRY_INSIDE && secret_is_for(connection_proxy(c)->config, c->host, c->port) && !secret_allows(head))
		return NET_REASON_REQUEST;
	return NET_REASON_NONE;
}

static void send_request(struct connection *c, const struct request_head *head)
{
	struct exchange *x = c->exchange;
	struct buffer    first;

	first = (struct buffer){ 0 };
	if (!write_head(c, head, &first)) {
		buffer_free(&first);
		connection_fail(c, NET_REASON_NO_MEMORY);
		return;
	}
	request_body_begin(&x->body, head);
	x->upgrades = head->upgrades;
	report_line_out(&c->line, buffer_left(&c->received));
	run_spend(c->run, buffer_left(&c->received));
	buffer_take(&c->received, head->len);
	c->up.filter   = pass_body;
	c->up.owner    = x;
	c->up.keeps_receiver_open = true; /* a server may take a half-closed connection for a closed one */
	flow_put(&c->up, &c->received);
	c->up.out = first;
	c->down.owner = c;
	if (x->upgrades)
		c->down.filter = pass_first_reply;
	else if (x->has_secrets)
		c->down.filter = pass_reply;
	c->on_client = on_client;
	c->on_server = on_server;
	c->wake      = wake;
	connection_deadline(c, DEADLINE_DIAL);
	wake(c);
}

static void take_request(struct connection *c, const struct request_head *head)
{
	enum net_reason reason = judge(c, head);

	if (reason == NET_REASON_NONE)
		send_request(c, head);
	else
		connection_refuse(c, reason);
}

static void read_request(struct connection *c)
{
	struct request_head head;
	const char         *why;
	enum tls_outcome    result;

	do {
		enum request_outcome outcome = REQUEST_MORE;

		if (connection_has_line(c))
			outcome = request_head_parse(buffer_at(&c->received), buffer_left(&c->received), &head, &why);
		switch (outcome) {
		case REQUEST_DONE:
			take_request(c, &head);
			return;
		case REQUEST_BAD:
			connection_refuse(c, NET_REASON_BAD_REQUEST);
			return;
		case REQUEST_MORE:
			break;
		}
		result = connection_read(c, REQUEST_HEAD_MAX);
	} while (result == TLS_MOVED);
	if (result == TLS_FAILED && c->client.tls && !tls_end_is_ready(c->client.tls))
		connection_fail(c, NET_REASON_PROGRAM_TLS);
	else if (result == TLS_END && buffer_left(&c->received) == 0)
		connection_end(c, false);
	else if (result == TLS_END || result == TLS_FAILED)
		connection_refuse(c, NET_REASON_BAD_REQUEST);
}

static void on_server_gone(struct connection *c)
{
	connection_end(c, true);
}

/* --- TLS that ends here --- */

static bool end_tls(struct connection *c)
{
	struct tls_authority *authority = connection_proxy(c)->authority;

	if (!authority)
		return false;
	c->client.tls = tls_end_serve(authority, c->client.source.fd, c->host, buffer_at(&c->received), buffer_left(&c->received));
	c->server.tls = tls_end_dial(authority, c->server.source.fd, c->host);
	buffer_free(&c->received);
	return c->client.tls && c->server.tls;
}

void exchange_begin(struct connection *c)
{
	c->exchange = calloc(1, sizeof *c->exchange);
	if (!c->exchange || (c->carry == CARRY_INSIDE && !end_tls(c))) {
		connection_fail(c, c->exchange && !connection_proxy(c)->authority ? NET_REASON_REQUEST : NET_REASON_NO_MEMORY);
		return;
	}
	c->held         = (struct deadline){ .due = on_held, .owner = c };
	c->awaits_reply = true;
	c->looked       = 0;
	c->on_client    = read_request;
	c->on_server    = on_server_gone;
	connection_deadline(c, DEADLINE_REQUEST);
	read_request(c);
}
