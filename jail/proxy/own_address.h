/*
 * own_address.h - is this an address of the host itself?
 *
 * Services of the host listen there, and may trust clients on the same machine. The kernel's
 * routing table is asked each time (RTM_GETROUTE): addresses come and go, and a host may have
 * public ones. bind() to the address would show the same, but not where ip_nonlocal_bind is on.
 */
#pragma once
#include "err.h"

#include <sys/socket.h>

/* A netlink socket for own_address_ask_kernel(), owned by the caller; -1 with *e. */
must_use int own_address_open_netlink(struct err *e);

enum own_answer { OWN_NOT, OWN_IS, OWN_NO_ROUTE };
/* Does not block: the kernel answers within send(). OWN_NO_ROUTE: no unicast route, or no answer. */
enum own_answer own_address_ask_kernel(int kernel, const struct sockaddr *address);
