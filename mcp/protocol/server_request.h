/*
 * server_request.h - a request of the server to a legacy client: sent as part of a call, answered by a response of
 * its own.
 *
 * Only the principal that was asked can know the id. A response of another principal is ignored even if it has the
 * id.
 */
#pragma once
#include "call.h"

struct client_request {
	TAILQ_ENTRY(client_request) link;
	char   id[40];        /* cannot be guessed; "": it is not under way */
	char   principal[64]; /* the principal that may answer */
	/* Called once, when it is not under way any more. */
	void (*answered)(struct client_request *r, struct mcp *m, const struct rpc_message *response);
};

/* r stays the caller's, and its member answered is set. Takes params over. */
void client_request_send(struct client_request *r, struct call *c, const char *method, json_t *params);
/* No answer is taken any more. */
void client_request_detach(struct client_request *r, struct mcp *m);

static inline bool client_request_waits(const struct client_request *r)
{
	return *r->id;
}

/* What answers no request that is under way is ignored: late ones are usual. */
void client_request_deliver_response(struct mcp *m, const struct channel *ch, const struct rpc_message *response);

/* Fills ret with random hexadecimal digits, and ends it with NUL: len - 1 of them, at most 32. */
void client_request_make_secret(char *ret, size_t len);
