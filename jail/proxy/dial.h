/*
 * dial.h - to a host that is allowed, at an address that was judged
 *
 * Every address of a name is judged before one is connected to, and exactly a judged one is: a name that leads to
 * a second place between check and connect leads nowhere. With the host's own proxy
 * (config.upstream) that one resolves and connects.
 */
#pragma once
#include "lookup.h"

struct connection;

struct dial {
	struct lookup *lookup; /* under way */
	size_t         n, next;
	union address  address[LOOKUP_ADDRESSES_MAX];
	int64_t        until_ms;
	bool           is_judged_private; /* some address is not public: only a permission that is_private lets it pass */
};

/* Ends in connection_next() with the server's side connected, or in connection_refuse() or connection_fail(). */
void dial_begin(struct connection *c);
