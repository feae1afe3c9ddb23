/* gate.h - which function answers which request */
#pragma once
#include "connection.h"

enum { GATE_ANSWERED = 0, GATE_ANSWERS_ITSELF = 1 };

/*
 * Answers the request. -1 with *why: the caller refuses it. The caller closes the descriptors that are left in
 * request->fd.
 */
must_use int gate_serve_request(struct connection *c, const struct protocol_request *request, struct denial *why);

/*
 * GATE_ANSWERED: reply is complete, and is sent. GATE_ANSWERS_ITSELF: by events, or later. reply is NULL where events
 * answer.
 */
typedef int gate_fn(struct connection *c, const struct protocol_request *request, json_t *reply, struct denial *why);

#define REQUEST(name, must, descriptors, handler, ...) gate_fn gate_handle_##handler;
#include "client_protocol.def"

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

/*
 * The profile of this name; NULL with *why if there is none that this client may use. It belongs to the server's set.
 */
const struct served_profile *gate_find_allowed_profile(struct connection *c, const char *name, struct denial *why);

/* {"runs":..,"memory_bytes":..,"runs_per_minute":..,"sessions":..,"contexts":..}: null is without bound. */
json_t *gate_quota_to_json(const struct quota_limits *quota);
