/*
 * method.h - the methods that a client may call, a row each, and the way from a message to its function.
 */
#pragma once
#include "call.h"

enum method_eras { ERA_LEGACY = 1, ERA_MODERN = 2, ERA_BOTH = 3 };

struct method {
	const char      *name; /* NULL ends a list */
	enum method_eras eras; /* in the other era the method is unknown */
	void           (*call)(struct call *c);
};

extern const struct method methods[]; /* methods.c; ends with a NULL name */

/* The row of a method in the era of the revision; NULL: unknown. */
const struct method *method_find(const char *name, enum revision revision);

/* Each in a file of its own, method_*.c. */
void method_initialize(struct call *c);
void method_ping(struct call *c);
void method_discover(struct call *c);
void method_tools_list(struct call *c);
void method_tools_call(struct call *c);

/*
 * What method_initialize() and method_discover() answer, for a program whose table has more methods: it adds the
 * capabilities of these. New references. NULL with *e: the request is invalid.
 */
must_use json_t *make_initialize_result(struct call *c, struct rpc_error *e);
must_use json_t *make_discover_result(const struct call *c);

/*
 * Handles a message of a channel. A request becomes a call; notifications and responses are handled at once. stdio
 * calls this; HTTP calls the two halves below, and compares the headers in between.
 */
void dispatch_message(struct mcp *m, struct channel *ch, void *channel_data, struct rpc_message *message);

/* First half: which revision is it, and is _meta complete? On failure *e must be answered with *http_status. */
must_use int era_decide_revision(const struct rpc_message *message, const struct channel *ch, enum revision *ret,
			struct rpc_error *e, int *http_status);
/* The same for a request that must be modern whatever its _meta says, because of an HTTP header. */
must_use int era_check_modern(const struct rpc_message *message, enum revision *ret, struct rpc_error *e,
			      int *http_status);
/* Second half: a request becomes a call. */
void dispatch_message_as(struct mcp *m, struct channel *ch, void *channel_data, struct rpc_message *message,
		 enum revision revision);
