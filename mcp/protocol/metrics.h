/*
 * metrics.h - what a brig-mcp has counted since it started, in Prometheus' text format.
 *
 * Its size is bounded: labels come from clients, and those that do not fit are counted as "other". With NULL every
 * function does nothing, so that callers need not know whether metrics are on.
 */
#pragma once
#include "defs.h"

#include <stdio.h>

struct metrics;

struct metrics *metrics_create(void); /* NULL: no memory */
void            metrics_destroy(struct metrics *m);

void metrics_run_started(struct metrics *m);
/* A run that was started has ended. reason: exit_reason of its record; profile: its name, or NULL. */
void metrics_run_ended(struct metrics *m, const char *reason, const char *profile);
/* A program was not run, or a request not let in. code: one word, like "busy". */
void metrics_count_refused(struct metrics *m, const char *code);
/* brigd has opened a session of a client; the session is gone. */
void metrics_session_opened(struct metrics *m);
void metrics_session_ended(struct metrics *m);
/* Cells that are ready, as brigd reported last; the line is left out until this was called. */
void metrics_set_ready_cells(struct metrics *m, uint64_t n);

uint64_t metrics_count_running(const struct metrics *m);
void     metrics_print(const struct metrics *m, FILE *out);
