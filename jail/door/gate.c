#include "gate.h"

/*
 * Every request that a client can make. Their keys are in client_protocol.def and client_request.c. A user that the access rules leave out
 * gets an error from all that need access; the others concern a run that began while the user still had it.
 */
/* clang-format off */
static const struct {
	gate_fn *serve;
	bool     needs_access;
} requests[REQUEST_COUNT] = {
	[REQUEST_hello]     = { gate_hello,     true },
	[REQUEST_run]       = { gate_run,       true }, /* gate_run() also begins calls in sessions */
	[REQUEST_exec]      = { gate_run,       true },
	[REQUEST_open]      = { gate_run,       true },
	[REQUEST_files]     = { gate_files,     true },
	[REQUEST_interrupt] = { gate_interrupt, true },
	[REQUEST_resize]    = { gate_resize,    true },
	[REQUEST_restart]   = { gate_restart,   true },
	[REQUEST_close]     = { gate_close,     true },
	[REQUEST_tools]     = { gate_tools,     false },
	[REQUEST_cancel]    = { gate_cancel,    false },
	[REQUEST_list]      = { gate_list,      true },
	[REQUEST_stats]     = { gate_stats,     true },
	[REQUEST_metrics]   = { gate_metrics,   true },
	[REQUEST_explain]   = { gate_explain,   true },
	[REQUEST_reload]    = { gate_reload,    true },
};
/* clang-format on */

int gate_serve(struct connection *c, const struct protocol_request *request, int *fds, size_t n, struct denial *why)
{
	if (requests[request->kind].needs_access && gate_check_access(c, why) < 0)
		return -1;
	return requests[request->kind].serve(c, request, fds, n, why);
}
