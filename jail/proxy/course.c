#include "course.h"

#include "proxy_exchange.h"
#include "look.h"
#include "proxy.h"
#include "proxy_port.h"

static void carry(struct connection *c)
{
	report_line_through(&c->line);
	switch (c->carry) {
	case CARRY_TUNNEL:
		tunnel_begin(c);
		return;
	case CARRY_REQUEST:
	case CARRY_INSIDE:
		exchange_begin(c);
		return;
	case CARRY_UNKNOWN:
		break;
	}
	connection_end(c, true);
}

static void next(struct connection *c)
{
	if (c->carry == CARRY_UNKNOWN && c->via == VIA_ADDRESS)
		look_begin(c);
	else if (c->reached < REACHED_SERVER)
		dial_begin(c);
	else if (c->reached < REACHED_CONFIRMED && (c->via == VIA_CONNECT || c->via == VIA_SOCKS))
		proxy_port_confirm(c);
	else if (c->carry == CARRY_UNKNOWN)
		look_begin(c);
	else
		carry(c);
}

static void begin_at_address(struct connection *c, uint32_t address, uint16_t port)
{
	const char *name = name_table_name(&c->run->names, address);

	c->via  = VIA_ADDRESS;
	c->port = port;
	if (name)
		connection_name(c, name, port, false, NET_SCHEME_ANY);
	else
		connection_refuse(c, NET_REASON_BAD_NAME); /* no name of this run has that address, nor has localhost */
}

void course_begin(struct run *run, int fd, uint32_t address, uint16_t port)
{
	struct connection *c = connection_open(run, fd, next);

	if (c && port)
		begin_at_address(c, address, port);
	else if (c)
		proxy_port_begin(c);
}
