/* gate_session.c - sessions: opened, used and closed */
#include "gate.h"

static int refuse(struct denial *why)
{
	return deny(why, DENIAL_unavailable, NULL, "this brigd has no sessions yet");
}

int gate_open(struct connection *c, const struct protocol_request *request, int *fds, size_t n, struct denial *why)
{
	(void)c, (void)request, (void)fds, (void)n;
	return refuse(why);
}

int gate_files(struct connection *c, const struct protocol_request *request, int *fds, size_t n, struct denial *why)
{
	return gate_open(c, request, fds, n, why);
}

int gate_interrupt(struct connection *c, const struct protocol_request *request, int *fds, size_t n, struct denial *why)
{
	return gate_open(c, request, fds, n, why);
}

int gate_restart(struct connection *c, const struct protocol_request *request, int *fds, size_t n, struct denial *why)
{
	return gate_open(c, request, fds, n, why);
}

int gate_close(struct connection *c, const struct protocol_request *request, int *fds, size_t n, struct denial *why)
{
	return gate_open(c, request, fds, n, why);
}
