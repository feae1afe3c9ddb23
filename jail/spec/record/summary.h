/*
 * summary.h - a record, as people read it.
 *
 * Takes the JSON form, which is what a client gets. Its texts are untrusted and
 * are made safe for a terminal.
 */
#pragma once
#include "record.h"

/* One line: "timeout_wall (--timeout 0.5), wall 501 ms, ...". limit: the option whose limit ended the run, "--timeout 0.5"; "": none. */
void summary_print(const json_t *record, const char *limit, FILE *out);

/* The exit status of brig: of the reason, or of the program if the reason has none; of setup_failed for a malformed record. */
int summary_exit_status(const json_t *record);

/* False: not a name of exit.def. */
bool summary_get_exit_reason(const json_t *record, enum exit_reason *ret);

/* The error of the record: why no program ran, or why its end is not known; "" when there is none. Returns buf. */
char *summary_copy_error_text(const json_t *record, char *buf, size_t len);
