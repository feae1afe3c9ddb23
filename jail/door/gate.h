/* gate.h - which function answers which request */
#pragma once
#include "connection.h"

/*
 * A function that keeps a descriptor takes it out of fds (fd_take()); the caller closes the others. -1 with *why: no answer was
 * sent, and the caller refuses the request.
 */
must_use int gate_serve(struct connection *c, const struct protocol_request *request, int *fds, size_t n, struct denial *why);

typedef int gate_fn(struct connection *c, const struct protocol_request *request, int *fds, size_t n, struct denial *why);
gate_fn     gate_hello, gate_run, gate_cancel, gate_tools, gate_list, gate_stats, gate_metrics, gate_explain, gate_reload;
gate_fn     gate_files, gate_interrupt, gate_resize, gate_restart, gate_close;

/* A request for a run, from one try to start it to the next. */
struct run_try {
	char     id[RUN_ID_LEN + 1];
	double   asked_ms;
	uint64_t memory_bytes;   /* its limit; 0: not known yet */
	bool     waits_for_turn; /* because of other users' runs, not of a quota */
	char     why[160];       /* why the last try failed */
};

/* --- gate_access.c --- */

must_use int gate_check_access(const struct connection *c, struct denial *why);

/* The profile of this name; NULL with *why if there is none that this client may use. It belongs to the door's set. */
const struct served_profile *gate_profile(struct connection *c, const char *name, struct denial *why);

/* {"runs":..,"memory_bytes":..,"runs_per_minute":..,"sessions":..,"contexts":..}: null is without bound. */
json_t *gate_quota_json(const struct quota_limits *quota);
