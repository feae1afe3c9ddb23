/*
 * executions.h - all runs of this brig-mcp, and the handles by which calls find theirs again.
 *
 * A handle is the run's id. It belongs to a principal, and to nobody else there
 * is no such run. Results of runs that have ended are kept for ten minutes, but
 * no more than KEPT_MAX of them and KEPT_BYTES: the oldest go first.
 */
#pragma once
#include "execution.h"

enum { KEPT_MAX = 64, KEPT_RUNNING_MAX = 256 };
#define KEPT_BYTES (64 * MIB)
#define KEPT_MS    (10 * 60 * 1000)

struct executions *executions_create(struct mcp *m);
/* Cancels what runs; the connection is ended afterwards, so nothing is waited for. Before launcher_destroy(). */
void executions_destroy(struct executions *all);

/* NULL: none of that principal. */
struct execution *executions_find(struct mcp *m, const char *principal, const char *handle);

/* Gives it a handle. false: too many have one. */
must_use bool executions_keep(struct execution *x);
/* Its result was taken and nobody will ask again. */
void executions_drop(struct execution *x);
