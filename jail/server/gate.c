#include "gate.h"

static const struct {
	gate_fn *serve;
	bool     needs_access;
} requests[] = {
#define REQUEST(name, must, descriptors, handler, reply, access, doc) { gate_handle_##handler, access },
#include "client_protocol.def"
};

int gate_serve_request(struct connection *c, const struct protocol_request *request, struct denial *why)
{
	json_t *reply;
	int     r;

	if (requests[request->kind].needs_access && gate_check_access(c, why) < 0)
		return -1;
	reply = reply_shape(request->kind) ? protocol_reply(request->kind, request->tag) : NULL;
	r     = requests[request->kind].serve(c, request, reply, why);
	if (r == GATE_ANSWERED)
		connection_send(c, reply, NULL, 0);
	else
		json_decref(reply);
	return r;
}
