/*
 * program_report.h - what the guest runner says of its program, read by who does not believe it.
 *
 * The runner shares its process with the program: whatever comes out of the
 * pipe may be the program's own words. Here bytes become a JSON object with
 * every key of its kind and no other, each of its type and within its bounds;
 * what it claims is not judged. NUL in a text becomes U+FFFD, but for the
 * result itself and JSON in bundles, whose texts have a length. Base64 is base64;
 * whether it is a picture, and a picture that is not a bomb, nobody knows.
 */
#pragma once
#include "shape.h"

#define PROGRAM_REPORT_MAX    (8 * MIB) /* bytes; who reads the pipe keeps no more */
#define PROGRAM_REPORT_WEIGHT 1150000 /* wire_weight(): the worst that a runner sends is half a MiB of "[]," as result, and JSON of a weight of 250000 in bundles */

enum {
	PROGRAM_REPORT_VARIABLES_MAX = 200,
	PROGRAM_REPORT_DISPLAYS_MAX  = 32,
	PROGRAM_REPORT_LEFT_OUT_MAX  = 100,
	PROGRAM_REPORT_RESULT_MAX    = MIB,     /* bytes of text in the result */
	PROGRAM_REPORT_DATUM_MAX     = 2 * MIB, /* bytes of text in one datum of a bundle */
};

enum program_report_kind { PROGRAM_REPORT_run, PROGRAM_REPORT_check };

/* A new reference, or NULL with what is wrong with it. */
must_use json_t *program_report_parse(enum program_report_kind kind, const void *bytes, size_t len, struct err *e);

/* Of a run, into its record (record.h): the keys of both but exit_code, which the kernel knows better. An error of ours stays. */
void program_report_into(json_t *record, const json_t *report);
/* There was something, and it was no report: a warning in the record says why. */
void program_report_complain(json_t *record, const struct err *why);

/* Is it base64 without anything else, as in bundles of image/png, image/jpeg and application/pdf? Nothing is none. */
bool program_report_is_base64(const char *text, size_t len);

/* For the manual and the fuzzer. */
const struct shape *program_report_bundle_shape(void);
const struct shape *program_report_shape(enum program_report_kind kind);
