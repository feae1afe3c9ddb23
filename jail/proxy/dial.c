#define _GNU_SOURCE
#include "dial.h"

#include "net_address.h"
#include "own_address.h"
#include "proxy.h"
#include "socket_room.h"
#include "upstream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

enum { DIAL_MS = 10 * 1000 };

static void try_address_after_failure(struct connection *c);

/* --- connected --- */

static void on_connected(struct connection *c)
{
	static const int yes = 1;

	(void)setsockopt(c->server.source.fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
	(void)setsockopt(c->server.source.fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
	connection_watch_events(c, 0, 0);
	if (upstream_is_used(c)) {
		upstream_send_connect(c);
		return;
	}
	report_line_set_address(&c->line, &c->dial.address[c->dial.next].any);
	c->reached = REACHED_SERVER;
	c->next(c);
}

static void on_connect_result(struct connection *c)
{
	int       error = 0;
	socklen_t len   = sizeof error;

	if (getsockopt(c->server.source.fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0)
		on_connected(c);
	else
		try_address_after_failure(c);
}

/* --- one address after the other --- */

/* A mapped address (::ffff:127.0.0.1) was judged as IPv6, and connect() must not make an IPv4 connection of it. */
static int open_server_socket(int family, uint64_t open)
{
	static const int yes = 1;
	int              fd  = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		socket_buffers_set(fd, SOCKET_OF_SERVER, open);
	if (fd >= 0 && family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
	return fd;
}

static void try_next_address(struct connection *c)
{
	struct dial *d = &c->dial;

	for (; d->next < d->n; d->next++) {
		const union address *to = &d->address[d->next];

		c->server.source.fd = open_server_socket(to->any.sa_family, connection_proxy(c)->open);
		if (c->server.source.fd < 0 && errno != EAFNOSUPPORT) {
			connection_fail(c, NET_REASON_NO_MEMORY);
			return;
		}
		if (c->server.source.fd >= 0 && connect(c->server.source.fd, &to->any, address_len(to)) == 0) {
			on_connected(c);
			return;
		}
		if (c->server.source.fd >= 0 && errno == EINPROGRESS) {
			connection_await_server(c, EPOLLOUT);
			connection_set_deadline(c, d->next + 1 < d->n ? DEADLINE_TRY : DEADLINE_DIAL);
			return;
		}
		side_close(&c->run->loop, &c->server, false);
	}
	connection_fail(c, NET_REASON_UNREACHABLE);
}

static void try_address_after_failure(struct connection *c)
{
	side_close(&c->run->loop, &c->server, false);
	c->dial.next++;
	if (loop_now_ms() < c->dial.until_ms)
		try_next_address(c);
	else
		connection_fail(c, NET_REASON_UNREACHABLE);
}

/* --- the addresses --- */

/* deny holds for an address by whatever name a program gets there. */
static bool is_address_denied(const struct connection *c, const union address *address)
{
	char              text[INET6_ADDRSTRLEN];
	bool              is_six = address->any.sa_family == AF_INET6;
	struct net_target target = { text, c->port, c->scheme };

	return inet_ntop(address->any.sa_family,
			 is_six ? (const void *)&address->six.sin6_addr : &address->four.sin_addr, text, sizeof text) &&
	       net_rules_find(&connection_proxy(c)->config->deny, &target);
}

/* A gateway of the network may take what is sent to an IPv6 address to the IPv4 address inside: both count. */
static bool is_embedded_v4_denied(const struct connection *c, const union address *address)
{
	union address inner;

	return net_address_embedded_v4(&address->any, &inner.four) && is_address_denied(c, &inner);
}

/*
 * One bad address refuses the name: it is an attempt to reach that address, or an answer that was meant for another
 * network. An address to which the kernel knows no route, or of which it does not know whether it is the host's own, is
 * passed over.
 */
static enum net_reason check_resolved_addresses(struct connection *c, const union address *addresses, size_t n)
{
	struct dial  *d      = &c->dial;
	int           kernel = connection_proxy(c)->kernel;
	union address inner;

	for (size_t i = 0; i < n; i++) {
		bool            has_inner = net_address_embedded_v4(&addresses[i].any, &inner.four);
		enum own_answer own       = has_inner ? own_address_ask_kernel(kernel, &inner.any) : OWN_NOT;

		if (own != OWN_IS)
			own = own_address_ask_kernel(kernel, &addresses[i].any);
		if (own == OWN_IS)
			return NET_REASON_OWN_ADDRESS;
		if (is_address_denied(c, &addresses[i]) || is_embedded_v4_denied(c, &addresses[i]))
			return NET_REASON_DENIED;
		if (net_address_special_range(&addresses[i].any))
			d->is_judged_private = true;
		if (own == OWN_NOT)
			d->address[d->n++] = addresses[i];
	}
	return d->is_judged_private && !c->permission.is_private ? NET_REASON_NOT_PUBLIC : NET_REASON_NONE;
}

static void keep_addresses(struct connection *c, const union address *addresses, size_t n)
{
	memcpy(c->dial.address, addresses, n * sizeof *addresses);
	c->dial.n = n;
}

static void dial_resolved_addresses(void *owner, const union address *addresses, size_t n)
{
	struct connection *c      = owner;
	enum net_reason    reason = NET_REASON_NONE;

	if (n == 0) {
		connection_fail(c, NET_REASON_UNRESOLVED);
		return;
	}
	if (upstream_is_used(c))
		keep_addresses(c, addresses, n);
	else
		reason = check_resolved_addresses(c, addresses, n);
	if (reason != NET_REASON_NONE)
		connection_refuse(c, reason);
	else
		try_next_address(c);
}

static bool parse_address(const char *host, uint16_t port, union address *ret)
{
	*ret = (union address){ 0 };
	if (inet_pton(AF_INET, host, &ret->four.sin_addr) == 1) {
		ret->four.sin_family = AF_INET;
		ret->four.sin_port   = htons(port);
		return true;
	}
	if (inet_pton(AF_INET6, host, &ret->six.sin6_addr) != 1)
		return false;
	ret->six.sin6_family = AF_INET6;
	ret->six.sin6_port   = htons(port);
	return true;
}

/* A rule, or config.upstream, names this very address: it is not judged, except that deny may name the IPv4 address
 * inside. */
static void dial_literal(struct connection *c, const char *host, uint16_t port)
{
	union address address;

	if (!parse_address(host, port, &address)) {
		connection_refuse(c, NET_REASON_BAD_NAME);
		return;
	}
	if (!upstream_is_used(c) && is_embedded_v4_denied(c, &address)) {
		connection_refuse(c, NET_REASON_DENIED);
		return;
	}
	keep_addresses(c, &address, 1);
	try_next_address(c);
}

static void resolve_name(struct connection *c, const char *host, uint16_t port)
{
	struct run *run = c->run;
	struct err  e;

	if (!run->lookups)
		run->lookups = lookups_create(&run->loop, &run->proxy->loop, &e);
	if (run->lookups)
		lookup_start(run->lookups, host, port, dial_resolved_addresses, c, &c->dial.lookup);
	else
		connection_fail(c, NET_REASON_NO_MEMORY);
}

void dial_start(struct connection *c)
{
	char     host[NET_HOST_MAX];
	uint16_t port       = c->port;
	bool     is_address = c->is_address;

	memcpy(host, c->host, sizeof host);
	if (upstream_is_used(c))
		upstream_get_host(c, host, &port, &is_address);
	c->try_again     = try_address_after_failure;
	c->on_server     = on_connect_result;
	c->dial.until_ms = loop_now_ms() + DIAL_MS;
	c->dial.n        = 0;
	c->dial.next     = 0;
	connection_watch_events(c, 0, 0);
	connection_set_deadline(c, DEADLINE_DIAL);
	if (is_address)
		dial_literal(c, host, port);
	else
		resolve_name(c, host, port);
}
