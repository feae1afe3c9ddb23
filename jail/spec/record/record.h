/*
 * record.h - what happened in one run and what it cost.
 *
 * Filled from waitid(), counters of control groups, the seccomp listener and
 * brig-proxy's report: nothing that the program prints can reach it. A figure that
 * this host cannot measure is RECORD_NONE and becomes null, never 0.
 */
#pragma once
#include "json_text.h"
#include "net_report.h"
#include "run_result.h"

#include <jansson.h>
#include <stdio.h>

struct record {
	char                     run_id[37];
	const char              *profile, *rootfs; /* borrowed; NULL when the run failed before it had them */
	const struct run_result *result;           /* borrowed */
	const struct net_report *network;          /* borrowed; NULL: the run had no network */
	/* The name of a system call, or its number; NULL: none was refused. This floor has no table of all of them. */
	char *(*call_name)(int number, char *buf, size_t len);
	struct {
		bool        is_there; /* the record is of a call in a session */
		const char *id, *context, *state; /* borrowed; context NULL: a command */
		int64_t     age_ms, idle_left_ms;
	} session;
	/* why a session has ended, in words; borrowed; NULL: the record is of no session as a whole */
	const char *session_end;
};

/* A call that the filter refused with an errno. */
struct record_refusal {
	char call[32], argument[REFUSED_TEXT_MAX]; /* argument as refused_call_print() writes it */
};
/* Row i of result->refused. */
void record_describe_refusal(const struct record *r, uint32_t i, struct record_refusal *ret);

/* Writes every key of brig(1), in that order. No record is larger than RECORD_TEXT_MAX. */
enum { RECORD_TEXT_MAX = 28 * 1024, RECORD_NETWORK_MAX = 12 * 1024 };
void record_put_json(struct json_text *t, const struct record *r);
/* The same as a tree: a new reference. */
json_t *record_to_json(const struct record *r);

/* "SIGSEGV"; "SIG34" for those without a name. */
char *record_print_signal_name(int signal, char *buf, size_t len);
