#include "gate.h"

static const struct {
	gate_fn *serve;
	bool     needs_access;
} requests[] = {
#define REQUEST(name, must, descriptors, handler, reply, access, doc) { gate_##handler, access },
#include "client_protocol.def"
};

int gate_serve(struct connection *c, const struct protocol_request *request, struct denial *why)
{
	if (requests[request->kind].needs_access && gate_check_access(c, why) < 0)
		return -1;
	return requests[request->kind].serve(c, request, why);
}
