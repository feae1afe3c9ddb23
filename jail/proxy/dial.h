/*
 * dial.h - connects to an allowed host, at an address that was judged
 *
 * All addresses of a name are judged before the first connect(), which gets exactly one of them: a name whose address
 * changes between check and connect gains nothing (DNS rebinding). With the host's own proxy (config.upstream), that
 * proxy resolves and connects.
 */
#pragma once
#include "lookup.h"

struct connection;

struct dial {
	struct lookup *lookup; /* NULL: none is under way */
	size_t         n, next;
	union address  address[LOOKUP_ADDRESSES_MAX];
	int64_t        until_ms;
	/* the name has an address that is not public: only a permission with is_private lets it pass. Of an address
	 * that a rule names: false */
	bool           is_judged_private;
};

/* Ends in next() with the server's side connected, or in connection_refuse() or connection_fail(). */
void dial_start(struct connection *c);
