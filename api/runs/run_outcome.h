/*
 * run_outcome.h - how a run ended, for the encoders of all interfaces.
 *
 * A run that brig could not run, or could not run to its end, has a fault and no verdict: no encoder may report it as
 * the program's failure.
 */
#pragma once
#include "denial.h"

#include <jansson.h>

enum run_verdict {
#define VERDICT(name, fusion, nemo, piston, judge0) VERDICT_##name,
#include "verdict_name.def"
#undef VERDICT
	VERDICT_COUNT,
};

struct verdict_names {
	const char *fusion, *nemo, *piston;
	int         judge0;
};
extern const struct verdict_names verdict_names[VERDICT_COUNT];

enum run_fault {
	FAULT_NONE,
	FAULT_REQUEST, /* the client must change it: 400 */
	FAULT_RATE,    /* too many starts of this client: 429 */
	FAULT_BUSY,    /* full, or stopping: later */
	FAULT_BRIG,    /* set-up, a lost connection, a cancelled run: later, elsewhere perhaps */
};

struct run_outcome {
	enum run_fault   fault;
	char             code[32], text[500]; /* of the fault */
	uint64_t         retry_after_ms;      /* 0: not known */

	enum run_verdict verdict;
	int              exit_code;           /* 128 + a signal's number, or that of a limit */
	const char      *signal;              /* "SIGSEGV"; NULL: none. Borrowed from the record */
	const char      *out, *err;           /* bytes of the program: hostile, no text. Borrowed */
	size_t           out_len, err_len;
	bool             truncated;
	double           wall_ms, cpu_ms;     /* -1: not measured */
	int64_t          memory_peak_bytes;
	json_t          *record, *report;     /* owned; report NULL: there was none */
	json_t          *files;               /* {PATH: BASE64} that were fetched; owned; NULL: none were asked for */
	json_t          *notes;               /* texts: limits that were lowered, files left out; owned, or NULL */
};
void run_outcome_done(struct run_outcome *o);

void run_outcome_fail(struct run_outcome *o, enum run_fault fault, const char *code, const char *fmt, ...)
	printf_like(4, 5);
void run_outcome_copy_fault(struct run_outcome *o, const struct run_outcome *from);
/* By an error of brigd. */
void run_outcome_set_denial(struct run_outcome *o, const json_t *error);
/* By the event ended: its record is copied, and its verdict or fault set. */
void run_outcome_set_ended(struct run_outcome *o, const json_t *event);
void run_outcome_add_note(struct run_outcome *o, const char *fmt, ...) printf_like(2, 3);

/* Members of answers, new references. Bytes that are not UTF-8 become U+FFFD. */
json_t *run_outcome_text_to_json(const char *bytes, size_t len);
/* The key brig of every answer: how it ended and what it used, as the kernel measured it. */
json_t *run_outcome_brig_to_json(const struct run_outcome *o);
