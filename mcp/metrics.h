/*
 * metrics.h - what one brig-mcp has counted since it started, in Prometheus' text format.
 *
 * Bounded: labels that come from clients cannot make it grow, what does not
 * fit is counted as "other". Every function takes NULL and then does nothing,
 * so that nobody has to ask whether somebody counts.
 */
#pragma once
#include "defs.h"

#include <stdio.h>

struct metrics;

struct metrics *metrics_create(void); /* NULL: no memory */
void            metrics_destroy(struct metrics *m);

void metrics_run_started(struct metrics *m);
/* Of one that was started. reason: exit_reason of its record; profile: its name, or NULL. */
void metrics_run_ended(struct metrics *m, const char *reason, const char *profile);
/* A program that was to run and was not, or a request that was not let in; code: one word, like "busy". */
void metrics_refused(struct metrics *m, const char *code);
/* A session of a client: brigd has opened it; it is gone. */
void metrics_session_opened(struct metrics *m);
void metrics_session_ended(struct metrics *m);
/* Cells that stand ready, as brigd said last; before the first time the line is left out. */
void metrics_cells_ready(struct metrics *m, uint64_t n);

uint64_t metrics_running(const struct metrics *m);
void     metrics_print(const struct metrics *m, FILE *out);
