/*
 * lookup.h - the addresses of an allowed name, from the host's own resolver
 *
 * Uses c-ares, in the loop and without a thread: /etc/hosts, then the servers of /etc/resolv.conf. There is no search
 * list: exactly the allowed name is asked for. resolv.conf and nsswitch.conf are read again after they were written
 * or replaced.
 *
 * Each run has lookups of its own. c-ares cannot take back a single question, and asks again for many seconds; when the
 * 65,536 numbers of a channel's questions are used up, it looks for a free one for ever. What a run has asked ends with
 * it, and meanwhile net_connections bounds it.
 */
#pragma once
#include "loop.h"

#include <netinet/in.h>

enum { LOOKUP_ADDRESSES_MAX = 8, LOOKUP_SOCKETS_MAX = 16 };

union address {
	struct sockaddr     any;
	struct sockaddr_in  four;
	struct sockaddr_in6 six;
};

socklen_t address_len(const union address *a);

struct lookups;
/* loop: of the sockets; timers: of the loop whose timers are served. */
must_use struct lookups *lookups_create(struct loop *loop, struct loop *timers, struct err *e);
void                     lookups_destroy(struct lookups *all);

struct lookup;
/* n 0: the name has no address, or no server answered. IPv4 first. May be called before lookup_start() returns. */
typedef void (*lookup_done)(void *owner, const union address *addresses, size_t n);
/* *slot points to the lookup until done is called. */
void lookup_start(struct lookups *all, const char *name, uint16_t port, lookup_done done, void *owner,
		  struct lookup **slot);
/* done will not be called. l may be NULL. */
void lookup_detach(struct lookup *l);
