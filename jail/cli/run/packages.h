/*
 * packages.h - packages that a run asks for beside those of its rootfs (decision 0190)
 *
 * They are a layer in the user's store, named by what was asked for. If it is not there, a run of its own resolves it
 * in a jail, and brig-rootfs puts it into the store. All of this is before brig connects for the run itself, and while
 * it still has its rights.
 */
#pragma once
#include "foreground_run.h"
#include "paths.h"

/* one_run_connect_and_run() */
typedef int carry_out_fn(struct request *r, int (*report)(const struct foreground_run *c));

bool packages_are_wanted(const struct request *r);
/*
 * Opens the layer, r->layer, after making it if it is missing, or if r->upgrade. program: the text of the run's program
 * as a file, for --script; -1: it has none.
 */
must_use int packages_open(struct request *r, int program, carry_out_fn *carry_out, struct err *e);
/* Does so for a request that is ready to be sent, if it wants packages, and adds the layer to it. */
must_use int packages_add_layer(struct request *r, carry_out_fn *carry_out, struct err *e);
