#include "gate.h"

/* Every request that a client can make. Their keys are in client_protocol.def and client_request.c. */
/* clang-format off */
static gate_fn *const rows[REQUEST_COUNT] = {
	[REQUEST_hello]   = gate_hello,
	[REQUEST_run]     = gate_run,
	[REQUEST_exec]    = gate_run, /* the same but for what is executed */
	[REQUEST_open]    = gate_run,
	[REQUEST_files]   = gate_files,
	[REQUEST_interrupt] = gate_interrupt,
	[REQUEST_resize]  = gate_resize,
	[REQUEST_restart] = gate_restart,
	[REQUEST_close]   = gate_close,
	[REQUEST_tools]   = gate_tools,
	[REQUEST_cancel]  = gate_cancel,
	[REQUEST_list]    = gate_list,
	[REQUEST_stats]   = gate_stats,
	[REQUEST_metrics] = gate_metrics,
	[REQUEST_explain] = gate_explain,
	[REQUEST_reload]  = gate_reload,
};
/* clang-format on */

int gate_serve(struct connection *c, const struct protocol_request *request, int *fds, size_t n, struct denial *why)
{
	if (request->kind != REQUEST_cancel && request->kind != REQUEST_tools && gate_check_access(c, why) < 0)
		return -1;
	return rows[request->kind](c, request, fds, n, why);
}
