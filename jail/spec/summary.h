/*
 * summary.h - a record, as people read it.
 *
 * From the JSON form, which is what a client gets. The texts in it come from
 * somebody else: they are made fit for a terminal.
 */
#pragma once
#include "record.h"

/* "timeout_wall (--timeout 0.5), wall 501 ms, ...": one line. limit: "--timeout 0.5", the option behind the end; "": none. */
void summary_print(const json_t *record, const char *limit, FILE *out);

/* What brig exits with: the reason's own status, else the program's; that of a set-up that failed when the record is none. */
int summary_status(const json_t *record);

/* false when it is none of the list. */
bool summary_reason(const json_t *record, enum exit_reason *ret);

/* Why no program ran, or why the end is not known; "" when the record has no error. */
char *summary_error(const json_t *record, char *buf, size_t len);
