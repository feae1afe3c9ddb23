/*
 * lookup.h - the addresses of an allowed name, from the host's own resolver
 *
 * c-ares: /etc/hosts, then the servers of /etc/resolv.conf, in the loop and without a thread. No search
 * list: the name that was allowed is the name that is asked for. resolv.conf and nsswitch.conf are read again when they
 * have changed, or others have taken their place.
 */
#pragma once
#include "loop.h"

#include <netinet/in.h>

enum { LOOKUP_ADDRESSES_MAX = 8, LOOKUP_SOCKETS_MAX = 512 };

union address {
	struct sockaddr     any;
	struct sockaddr_in  four;
	struct sockaddr_in6 six;
};

socklen_t address_len(const union address *a);

struct lookups;
must_use struct lookups *lookups_create(struct loop *loop, struct err *e);
void                     lookups_destroy(struct lookups *all);

struct lookup;
/* n 0: the name has no address, or no server answered. IPv4 first. May be called before lookup_begin() returns. */
typedef void (*lookup_done)(void *owner, const union address *addresses, size_t n);
/* *slot names the lookup until it is done. */
void lookup_begin(struct lookups *all, const char *name, uint16_t port, lookup_done done, void *owner, struct lookup **slot);
/* It will not be told. NULL is fine. */
void lookup_forget(struct lookup *l);
