/*
 * run_result.h - how a run ended and what it used.
 *
 * Fixed size, no pointers: the process that watches the run sends it to the server. Record, audit and metrics are
 * written from it.
 */
#pragma once
#include "err.h"
#include "limits.h"
#include "refused_call.h"

#define RECORD_NONE (-1)

enum exit_reason {
#define EXIT(name, status, doc) EXIT_##name,
#include "exit.def"
#undef EXIT
};
const char *exit_reason_name(enum exit_reason reason);
bool        exit_reason_find(const char *name, enum exit_reason *ret); /* false: not a name of exit.def */
const char *exit_reason_doc(enum exit_reason reason);
int         exit_reason_status(enum exit_reason reason); /* of brig itself; -1: the program's own */
enum { EXIT_REASONS = EXIT_denied + 1 };

/* Negative: this host cannot measure it, or nothing ran. It becomes null, never 0. */
struct run_figures {
#define FIGURE(key, type, unit, label, doc) type key;
#include "run_figures.def"
#undef FIGURE
};
static const struct run_figures run_figures_none = {
#define FIGURE(key, type, unit, label, doc) .key = RECORD_NONE,
#include "run_figures.def"
#undef FIGURE
};

/* A limit that refused something, by its row in limits_fields. A limit that ended the run is the reason. */
struct run_hit {
	enum limit_id limit;
	int64_t       value, peak, times; /* the limit; the most that was used; how often it refused */
};

struct run_result {
	enum exit_reason reason;
	int              wait_status; /* as from wait4(); -1 when nothing ran or a limit killed it */
	double           started_at;  /* seconds since 1970; negative: never */
	struct run_figures figures;
	struct run_hit   hit[8];
	unsigned         hits;
	struct refused_calls refused;
	uint32_t         refused_known; /* 0 or 1: there was a seccomp listener */
	uint64_t         layers, missing; /* bits of enum layer */
	/* [0]: of the layers own-ids and no-groups; [1]: of the limits; "": not known, or none is missing */
	char             missing_why[2][200];
	uint32_t         warm; /* 0 or 1 */
	/* why the program itself could not be executed: status 126 or 127, as in the shell; else 0 */
	int              exec_errno;
	char             rootfs_digest[65]; /* hex; "": the run did not come that far */
	struct err       why;
	struct err       left;       /* what could not be cleaned up; kind NONE when all was */
};

/* Nothing is known: every figure becomes null. */
#define RUN_RESULT_NONE ((struct run_result){ .wait_status = -1, .started_at = -1, .figures = run_figures_none })

/* The program's exit status, 128 + the signal if one ended it; RECORD_NONE: it has none. */
int run_result_exit_code(const struct run_result *r);
int run_result_signal(const struct run_result *r); /* 0: none */
