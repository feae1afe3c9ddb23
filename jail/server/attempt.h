/*
 * attempt.h - writes to the audit: runs and calls that ended, calls of tools, refused requests, refused peers
 *
 * Without an audit these functions do nothing. Arguments, environment and code are never written; of the code only its
 * SHA-256.
 */
#pragma once
#include "served_run.h"

void attempt_write_run_ended(const struct served_run *r, const struct record *record);
struct session_call;
void attempt_write_call_ended(const struct session_call *call, const struct record *record);
void attempt_write_request_refused(const struct connection *c, const struct protocol_request *request,
				   const struct denial *why);
void attempt_write_tool_call(const struct connection *c, const char *run_id, const struct protocol_call *call);
void attempt_write_peer_refused(struct server *d, const struct peer *peer, const struct denial *why);

/*
 * Keeps what the entry at the end of the run needs of its request. code: looked at only when the request runs a
 * program.
 */
void attempt_keep_request(struct attempt *ret, const struct protocol_request *request, const struct program_text *code);
