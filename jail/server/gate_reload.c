/* gate_reload.c - configuration and profiles are read again; the reply is the outcome */
#include "gate.h"
#include "reload.h"

#include <unistd.h>

int gate_handle_reload(struct connection *c, const struct protocol_request *request, json_t *reply, struct denial *why)
{
	struct reload *r = c->server->reload;

	(void)reply;
	if (c->peer.uid != 0 && c->peer.uid != getuid())
		return deny(why, DENIAL_denied, NULL,
			    "only root, or the user whose own service it is, may make it read its configuration again");
	if (!r)
		return deny(why, DENIAL_unavailable, NULL, "this brigd serves one client, and has no configuration");
	if (c->server->is_ending)
		return deny(why, DENIAL_unavailable, NULL, "the service is about to end");
	if (c->reload)
		return deny(why, DENIAL_busy, NULL, "this connection already waits for a reload");
	c->reload     = reload_request_reading(r);
	c->reload_tag = request->tag;
	return c->reload ? GATE_ANSWERS_ITSELF : deny(why, DENIAL_unavailable, NULL, "%s", reload_reader_is_gone);
}
