/*
 * attempt.h - what the audit is told: each run that ended, each call of a tool, each request that was refused, each peer that was turned away
 *
 * Nothing when the door has no audit. Arguments, environment and code are not told; of the code its digest.
 */
#pragma once
#include "served_run.h"

void attempt_ended(const struct served_run *r, const struct record *record);
struct session_call;
void attempt_call_ended(const struct session_call *call, const struct record *record);
void attempt_refused(const struct connection *c, const struct protocol_request *request, const struct denial *why);
void attempt_called(const struct connection *c, const char *run_id, const struct protocol_call *call);
void attempt_turned_away(struct door *d, const struct peer *peer, const struct denial *why);

/* What the end of a run will tell of its beginning. code: of a program, not of a command. */
void attempt_note(struct attempt *ret, const struct protocol_request *request, const struct program_text *code);
