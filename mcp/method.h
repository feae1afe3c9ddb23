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

extern const struct method methods[]; /* methods.c; ends with a NULL name */

/* The row of a method in the era of the revision; NULL: there is none. */
const struct method *method_find(const char *name, enum revision revision);

/* Each in a file of its own, method_*.c. */
void method_initialize(struct call *c);
void method_ping(struct call *c);
void method_discover(struct call *c);
void method_tools_list(struct call *c);
void method_tools_call(struct call *c);

/*
 * A message has come over a channel. Requests become a call; notifications
 * and responses are dealt with at once. On stdio everything goes through here;
 * HTTP looks at the headers between the two halves.
 */
void dispatch(struct mcp *m, struct channel *ch, void *channel_data, struct rpc_message *message);

/* First half: which revision, and is _meta whole? On failure an error to be answered with its HTTP status. */
must_use int era_decide(const struct rpc_message *message, const struct channel *ch, enum revision *ret, struct rpc_error *e,
			int *http_status);
/* Of a request that is modern whatever its _meta says, as an HTTP header may have told. */
must_use int era_modern(const struct rpc_message *message, enum revision *ret, struct rpc_error *e, int *http_status);
/* Second half. */
void dispatch_as(struct mcp *m, struct channel *ch, void *channel_data, struct rpc_message *message, enum revision revision);
