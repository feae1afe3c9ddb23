/*
 * method.h - what a client may ask for: one row a method, and the way from a message to its function.
 */
#pragma once
#include "call.h"

enum method_eras { ERA_LEGACY = 1, ERA_MODERN = 2, ERA_BOTH = 3 };

struct method {
	const char      *name; /* NULL ends a list */
	enum method_eras eras; /* in the other era it is not found */
	void           (*call)(struct call *c);
};

extern const struct method methods[]; /* the product's */

/*
 * A message has come over a channel. Requests become a call; notifications
 * and responses are dealt with at once. On stdio everything goes through here;
 * HTTP looks at the headers between the two halves.
 */
void dispatch(struct mcp *m, struct channel *ch, void *channel_data, struct rpc_message *message);

/* First half: which revision, and is _meta whole? On failure an error to be answered with its HTTP status. */
must_use int era_decide(const struct rpc_message *message, const struct channel *ch, enum revision *ret, struct rpc_error *e, int *http_status);
/* Second half. */
void dispatch_as(struct mcp *m, struct channel *ch, void *channel_data, struct rpc_message *message, enum revision revision);
