/*
 * zygote_report.h - what a supervisor says of its profile's zygote, for brig stats and brig top
 *
 * A memory file that the keeper made: the supervisor writes the whole struct, the keeper reads it when it is asked for figures,
 * and no process is woken. Nothing is decided by it. What is not known is ZYGOTE_UNKNOWN, never 0.
 *
 * The supervisor reads a zygote's memory because it is root of P: keeper and door have other ids, and no right over P's.
 */
#pragma once
#include "defs.h"

#include <sys/types.h>

#define ZYGOTE_UNKNOWN UINT64_MAX

enum zygote_state { ZYGOTE_NONE, ZYGOTE_STARTING, ZYGOTE_SERVING, ZYGOTE_REPLACED /* its successor is being made */ };

struct zygote_report {
	uint32_t state;      /* enum zygote_state */
	uint32_t generation; /* the first is 1 */
	uint64_t cells;      /* that this one was there for */
	double   started_ms; /* CLOCK_MONOTONIC */
	uint64_t shared_bytes, own_bytes;           /* PSS and USS */
	uint64_t forks;                             /* that wait for a program */
	uint64_t fork_shared_bytes, fork_own_bytes; /* of one of these */
};

extern const struct zygote_report zygote_report_none;

/* The keeper's end; -1 with errno. */
int  zygote_report_open(void);
void zygote_report_read(int fd, struct zygote_report *ret);

/* The supervisor's. */
void zygote_report_write(int fd, const struct zygote_report *report);
/* How many forks wait for a program, and one of them. */
struct waiting_forks {
	uint64_t n;
	pid_t    pid;
	int      pidfd;
};
/* Of a zygote that is still there; pidfd tells whether the figures were its own. */
void zygote_report_measure(struct zygote_report *report, pid_t pid, int pidfd, const struct waiting_forks *waiting);
