/*
 * record.h - what happened in one run and what it cost.
 *
 * Filled from waitid(), counters of control groups, the seccomp listener and
 * brig-proxy's report: nothing that the program prints can reach it. A figure that
 * this host cannot measure is RECORD_NONE and becomes null, never 0.
 */
#pragma once
#include "err.h"
#include "json_text.h"
#include "net_report.h"
#include "refused_call.h"

#include <jansson.h>
#include <stdio.h>

#define RECORD_NONE (-1)

enum exit_reason {
#define EXIT(name, status, doc) EXIT_##name,
#include "exit.def"
#undef EXIT
};
const char *exit_reason_name(enum exit_reason reason);
const char *exit_reason_doc(enum exit_reason reason);
int         exit_reason_status(enum exit_reason reason); /* of brig itself; -1: the program's own */
enum { EXIT_REASONS = EXIT_denied + 1 };

/* A limit that refused something. A limit that ended the run is the exit_reason. */
struct limit_hit {
	const char *name;  /* as in the profile: "pids" */
	int64_t     value; /* the limit */
	int64_t     peak;  /* the most that was used */
	int64_t     times; /* how often it refused */
};

/* A call that the filter refused with an errno. */
struct record_refusal {
	char     call[32]; /* its number if it has no name */
	char     argument[REFUSED_TEXT_MAX]; /* as refused_call_print() writes it */
	int      errnum;
	uint32_t count;
};

struct record {
	char             run_id[37];
	const char      *profile, *rootfs; /* borrowed; NULL when the run failed before it had them */
	const char      *rootfs_digest;    /* hex, borrowed; NULL: not opened */
	enum exit_reason exit_reason;
	int              exit_code;        /* RECORD_NONE when nothing ran or it was killed by a limit */
	int              signal;           /* 0: none */
	struct limit_hit hit[8];
	size_t           hits;
	struct record_refusal refused[REFUSED_MAX];
	size_t           refusals;
	bool             refused_known; /* false: there was no listener, and "refused" is null */
	double           wall_ms, cpu_ms, setup_ms; /* negative: none */
	int64_t          memory_peak_bytes, pids_peak, io_read_bytes, io_write_bytes;
	int64_t          stdout_bytes, stderr_bytes; /* counted by the client; RECORD_NONE until it adds them */
	int              truncated;                  /* 0, 1, RECORD_NONE */
	bool             warm;
	double           started_at;                 /* seconds since 1970; negative: never */
	uint64_t         layers, layers_missing;     /* bits of enum layer */
	struct err       why;                        /* for setup_failed and denied */
	const struct net_report *network;            /* borrowed; NULL: the run had no network */
	struct {
		bool        is_there; /* the record is of a call in a session */
		const char *id, *context, *state; /* borrowed; context NULL: a command */
		int64_t     age_ms, idle_left_ms;
	} session;
	const char      *session_end; /* why a session has ended, in words; borrowed; NULL: the record is of no session as a whole */
};

void record_init(struct record *r);
void record_add_hit(struct record *r, const char *name, int64_t value, int64_t peak, int64_t times);
/* name: the name of the call. */
void record_add_refusal(struct record *r, const struct refused_call *c, const char *name);

/* Writes every key of brig(1), in that order. No record is larger than RECORD_TEXT_MAX. */
enum { RECORD_TEXT_MAX = 28 * 1024, RECORD_NETWORK_MAX = 12 * 1024 };
void record_put(struct json_text *t, const struct record *r);
/* The same as a tree: a new reference. */
json_t *record_json(const struct record *r);

/* "SIGSEGV"; "SIG34" for those without a name. */
char *record_signal_name(int signal, char *buf, size_t len);
