#include "tunnel.h"

#include "proxy.h"

/* False: the connection has ended. */
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
	case FLOW_BROKEN:
	case FLOW_BAD:
		break;
	}
	connection_end(c, true); /* a reset shows the other side that it was cut off */
	return false;
}

static void go_on(struct connection *c)
{
	if (c->up.is_closed && c->down.is_closed)
		connection_end(c, false);
	else
		flow_want(c, &c->up, &c->down);
}

static void ready(struct connection *c, const struct side *side)
{
	if (flow_waits_for(&c->up, side) && !pump(c, &c->up))
		return;
	if (flow_waits_for(&c->down, side) && !pump(c, &c->down))
		return;
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
	if (pump(c, &c->up) && pump(c, &c->down))
		go_on(c);
}

void tunnel_begin(struct connection *c)
{
	c->on_client = on_client;
	c->on_server = on_server;
	c->wake      = wake;
	report_line_out(&c->line, buffer_left(&c->received));
	run_spend(c->run, buffer_left(&c->received));
	flow_put(&c->up, &c->received);
	connection_deadline(c, DEADLINE_IDLE);
	wake(c);
}
