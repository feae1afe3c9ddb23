/*
 * probe.h - each thing that brig needs of this host, tried for real.
 *
 * A row (probe.def) is a name, which runs need it, and a function that tries it. The
 * function runs in a forked child of a single-threaded process, may change its
 * own namespaces as it likes, and sends one struct finding through a pipe. A
 * probe that hangs or dies is a finding, too. Nothing outlives probe_run():
 * processes are killed by their process group, mounts end with their namespace,
 * control groups are removed by name.
 */
#pragma once
#include "finding.h"

struct probe;

struct probe_row {
	const char *name;
	enum need   need;
	bool (*run)(struct probe *p); /* true: ok, or degraded if it called report_degraded() */
	const char *since;            /* first kernel that has it, or NULL */
	const char *config;           /* kernel option behind it, or NULL */
	const char *purpose;          /* what brig does with it */
};

extern const struct probe_row probe_rows[];
extern const size_t           probe_rows_len;

#define PROBE_DEADLINE_MS 5000 /* a host with much to do takes a second for a mount */
unsigned probe_deadline_ms(const struct probe_row *row); /* PROBE_DEADLINE_MS; twice as long for the row that runs a program */

/* Always fills *ret. Caller must be single-threaded. */
void probe_run(const struct probe_row *row, const struct surroundings *at, unsigned deadline_ms, struct finding *ret);
