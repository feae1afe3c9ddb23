/*
 * executions.h - all runs of a brig-mcp, and the handles by which later calls find them.
 *
 * A handle is the run's id, or a random id if the run had none yet. It belongs to a principal; for other principals there is no
 * such run. Results of runs that have ended are kept for ten minutes, but at most KEPT_MAX of them and KEPT_BYTES in all: the
 * oldest are dropped first.
 */
#pragma once
#include "execution.h"

enum { KEPT_MAX = 64, KEPT_RUNNING_MAX = 256 };
#define KEPT_BYTES (64 * MIB)
#define KEPT_MS    (10 * 60 * 1000)

struct executions *executions_create(struct mcp *m);
/* Frees all of them. Runs are not cancelled: brigd ends them when the connection is closed, so brigd_link_destroy() must follow. */
void executions_destroy(struct executions *all);

/* NULL: that principal has no such run. */
struct execution *executions_find(struct mcp *m, const char *principal, const char *handle);

/* Gives it a handle if it has none. false: too many runs with a handle have not ended. */
must_use bool executions_keep(struct execution *x);
/* Takes the handle away. If no call attends the execution it is freed, or cancelled if it still runs. */
void executions_drop(struct execution *x);
