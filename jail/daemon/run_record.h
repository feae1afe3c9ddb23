/* run_record.h - how a run ended, as the record tells it, and the event that carries the record */
#pragma once
#include "client_protocol.h"
#include "profile_set.h"
#include "record.h"
#include "run.h"

/* Borrows from end and profile. What the streams held is the client's to count. */
void    run_record_fill(struct record *ret, const char *id, const struct served_profile *profile, const struct run_end *end);
json_t *run_record_ended(const struct record *record, uint64_t tag, const struct run_end *end);
