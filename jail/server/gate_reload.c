/* gate_reload.c - configuration and profiles are read again; the reply is the outcome */
#include "gate.h"
#include "reload.h"

#include <unistd.h>

/* Root, and in a plain user's own service that user. */
static bool may_reload(const struct connection *c)
{
	return c->peer.uid == 0 || c->peer.uid == getuid();
}

int gate_reload(struct connection *c, const struct protocol_request *request, struct denial *why)
{
	struct reload *r = c->server->reload;

	if (!may_reload(c))
		return deny(why, DENIAL_denied, NULL, "only root, or the user whose own service it is, may make it read its configuration again");
	if (!r || c->server->is_ending)
		return deny(why, DENIAL_unavailable, NULL, r ? "the service is about to end" : "this brigd serves one client, and has no configuration");
	if (c->reload)
		return deny(why, DENIAL_busy, NULL, "this connection already waits for a reload");
	c->reload     = reload_ask(r);
	c->reload_tag = request->tag;
	return c->reload ? 0 : deny(why, DENIAL_unavailable, NULL, "the process that reads configuration and profiles has ended; restart brigd");
}
