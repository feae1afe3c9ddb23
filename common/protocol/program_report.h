/*
 * program_report.h - reads the report of the guest runner about its program, which may be forged.
 *
 * The runner shares its process with the program, so the program may have
 * written the bytes in the pipe. They are parsed into a JSON object with every
 * key of its kind and no other, each of its type and within its bounds; whether
 * the report is true is not checked. NUL in a text becomes U+FFFD, except in
 * result and in JSON of bundles, whose texts have a length. Base64 is checked,
 * but not what it holds: it may be no picture, or a decompression bomb.
 */
#pragma once
#include "shape.h"

#define PROGRAM_REPORT_MAX    (8 * MIB) /* bytes; readers of the pipe keep no more */
#define PROGRAM_REPORT_WEIGHT 1150000 /* of wire_memory_weight(); the most that a runner sends: 512 KiB of "[]," as result, bundles that weigh 250000 */

enum {
	PROGRAM_REPORT_VARIABLES_MAX = 200,
	PROGRAM_REPORT_DISPLAYS_MAX  = 32,
	PROGRAM_REPORT_LEFT_OUT_MAX  = 100,
	PROGRAM_REPORT_WRITTEN_MAX   = 200,
	PROGRAM_REPORT_RESULT_MAX    = MIB,     /* bytes of text in the result */
	PROGRAM_REPORT_DATUM_MAX     = 2 * MIB, /* bytes of text in one datum of a bundle */
};

enum program_report_kind { PROGRAM_REPORT_run, PROGRAM_REPORT_check };

/* A new reference, or NULL with *e, whose text is plain. */
must_use json_t *program_report_parse(enum program_report_kind kind, const void *bytes, size_t len, struct err *e);

/* Copies the report of a run into its record (record.h). Not exit_code: the record has the kernel's. An error that the record has stays. */
void program_report_copy_to_record(json_t *record, const json_t *report);
/* For bytes that are not a report: puts a warning with the reason into the record. */
void program_report_set_warning(json_t *record, const struct err *why);

/* Whether the text is base64 and nothing else, as bundles must have it for image/png, image/jpeg and application/pdf. "" is not. */
bool program_report_is_base64(const char *text, size_t len);

/* For the manual and the fuzzer. */
const struct shape *program_report_bundle_shape(void);
const struct shape *program_report_shape(enum program_report_kind kind);
