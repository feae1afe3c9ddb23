/* run_record.h - how a run ended, as the record tells it, and the event that carries the record */
#pragma once
#include "client_protocol.h"
#include "profile_set.h"
#include "record.h"
#include "run.h"

/* *ret borrows from end and profile. The client counts what the streams held. */
void run_record_fill(struct record *ret, const char *id, const struct served_profile *profile, const struct run_end *end);
/* A buffer of this size holds every text. */
enum { RUN_RECORD_ENDED_MAX = 2 * RECORD_TEXT_MAX };
void run_record_put_ended(struct json_text *t, const struct record *record, uint64_t tag, const struct run_end *end);
