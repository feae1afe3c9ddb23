/* run_record.h - how a run ended, as the record tells it, and the event that carries the record */
#pragma once
#include "client_protocol.h"
#include "profile_set.h"
#include "record.h"
#include "run.h"

/* Borrows from end and profile. What the streams held is the client's to count. */
void run_record_fill(struct record *ret, const char *id, const struct served_profile *profile, const struct run_end *end);
/* The largest there can be is smaller than RUN_RECORD_ENDED_MAX. */
enum { RUN_RECORD_ENDED_MAX = 2 * RECORD_TEXT_MAX };
void run_record_put_ended(struct json_text *t, const struct record *record, uint64_t tag, const struct run_end *end);
