#include "course.h"

#include "proxy_exchange.h"
#include "look.h"
#include "proxy.h"
#include "proxy_port.h"

static void start_tunnel_or_exchange(struct connection *c)
{
	report_line_count_connection(&c->line);
	switch (c->carry) {
	case CARRY_TUNNEL:
		tunnel_start(c);
		return;
	case CARRY_REQUEST:
	case CARRY_INSIDE:
		exchange_start(c);
		return;
	case CARRY_UNKNOWN:
		break;
	}
	connection_close_and_free(c, true);
}

static void course_next_step(struct connection *c)
{
	if (c->carry == CARRY_UNKNOWN && c->via == VIA_ADDRESS)
		look_start_detection(c);
	else if (c->reached < REACHED_SERVER)
		dial_start(c);
	else if (c->reached < REACHED_CONFIRMED && (c->via == VIA_CONNECT || c->via == VIA_SOCKS))
		proxy_port_confirm(c);
	else if (c->carry == CARRY_UNKNOWN)
		look_start_detection(c);
	else
		start_tunnel_or_exchange(c);
}

static void set_host_of_table_address(struct connection *c, uint32_t address, uint16_t port)
{
	const char *name = name_table_name_of_address(&c->run->names, address);

	c->via  = VIA_ADDRESS;
	c->port = port;
	if (name)
		connection_set_host(c, name, port, false, NET_SCHEME_ANY);
	else
		connection_refuse(c, NET_REASON_BAD_NAME); /* no name of this run has that address, nor has localhost */
}

void course_start_connection(struct run *run, int fd, uint32_t address, uint16_t port)
{
	struct connection *c = proxied_connection_create(run, fd, course_next_step);

	if (c && port)
		set_host_of_table_address(c, address, port);
	else if (c)
		proxy_port_start(c);
}
