/*
 * own_address.h - is this an address of the host itself?
 *
 * Its services listen there, and trust clients on the same machine. The kernel's own
 * routing table is asked (RTM_GETROUTE): addresses come and go, and a host may have
 * public ones. Binding to the address tells the same, but not where ip_nonlocal_bind is on.
 */
#pragma once
#include "err.h"

#include <sys/socket.h>

/* A socket to the kernel, for own_address_look(); -1. */
must_use int own_address_open(struct err *e);

enum own_answer { OWN_NOT, OWN_IS, OWN_NO_ROUTE };
/* Does not wait: the kernel answers within the call. What it does not answer is OWN_NO_ROUTE. */
enum own_answer own_address_look(int kernel, const struct sockaddr *address);
