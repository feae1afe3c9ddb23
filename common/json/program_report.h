/*
 * program_report.h - what the guest runner says of its program, read by who does not believe it.
 *
 * The runner shares its process with the program: whatever comes out of the
 * pipe may be the program's own words. Here bytes become a JSON object with
 * every key of its kind and no other, each of its type and within its bounds;
 * what it claims is not judged. NUL in a text becomes U+FFFD, but for the
 * result itself, whose texts have a length.
 */
#pragma once
#include "shape.h"

#define PROGRAM_REPORT_MAX MIB /* bytes; who reads the pipe keeps no more */
#define PROGRAM_REPORT_WEIGHT 900000 /* wire_weight(): half a MiB of "[],", which is the worst that a runner sends, is lighter */

enum { PROGRAM_REPORT_VARIABLES_MAX = 200 };

enum program_report_kind { PROGRAM_REPORT_run, PROGRAM_REPORT_check };

/* A new reference, or NULL with what is wrong with it. */
must_use json_t *program_report_parse(enum program_report_kind kind, const void *bytes, size_t len, struct err *e);

/* Of a run, into its record (record.h): the keys of both but exit_code, which the kernel knows better. An error of ours stays. */
void program_report_into(json_t *record, const json_t *report);
/* There was something, and it was no report: a warning in the record says why. */
void program_report_complain(json_t *record, const struct err *why);

/* For the manual and the fuzzer. */
const struct shape *program_report_shape(enum program_report_kind kind);
