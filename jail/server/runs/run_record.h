/* run_record.h - the record of a run, and the event that carries it */
#pragma once
#include "client_protocol.h"
#include "served_run.h"

/* Of a run, or of a call with this id in its session. Borrows from r and result. */
struct record run_record_make(const struct served_run *r, const char *id, const struct run_result *result);
/* A buffer of this size holds every text. */
enum { RUN_RECORD_ENDED_MAX = 2 * RECORD_TEXT_MAX };
void run_record_put_ended_event(struct json_text *t, const struct record *record, uint64_t tag);
