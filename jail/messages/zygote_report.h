/*
 * zygote_report.h - what a supervisor reports about its profile's zygote, for brig stats and brig top
 *
 * A memory file that the monitor makes: the supervisor writes the whole struct, the monitor reads it when the server
 * asks for figures, and no process is woken. Nothing is decided by it. A figure that is not known is ZYGOTE_UNKNOWN,
 * never 0.
 *
 * The supervisor measures a zygote's memory because it is root of P; monitor and server have other ids, and no right
 * over P's processes.
 */
#pragma once
#include "defs.h"

#include <sys/types.h>

#define ZYGOTE_UNKNOWN UINT64_MAX

enum zygote_state { ZYGOTE_NONE, ZYGOTE_STARTING, ZYGOTE_SERVING, ZYGOTE_REPLACED /* its successor is being made */ };

struct zygote_report {
	uint32_t state;      /* enum zygote_state */
	uint32_t generation; /* the first is 1 */
	uint64_t cells;      /* built while this zygote served */
	double   started_ms; /* CLOCK_MONOTONIC */
	uint64_t shared_bytes, own_bytes;           /* PSS and USS */
	uint64_t forks;                             /* of the zygote that wait for an order */
	uint64_t fork_shared_bytes, fork_own_bytes; /* PSS and USS of one of them */
};

extern const struct zygote_report zygote_report_none;

/* For the monitor. A new file, or -1 with errno. */
int  zygote_report_open(void);
void zygote_report_read(int fd, struct zygote_report *ret);

/* For the supervisor. */
void zygote_report_write(int fd, const struct zygote_report *report);
/* How many forks wait for an order, and one of them. */
struct waiting_forks {
	uint64_t n;
	pid_t    pid;
	int      pidfd;
};
/* Measures the zygote pid. If pidfd shows its end, *report stays unchanged: the number may be another process's. */
void zygote_report_measure_processes(struct zygote_report *report, pid_t pid, int pidfd,
				  const struct waiting_forks *waiting);
