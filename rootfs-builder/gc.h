/*
 * gc.h - removes trees that have no name and are not in use.
 *
 * A tree without a name is an older version of a rootfs, or its name was
 * removed. A tree whose lock a process holds is in use, and stays.
 */
#pragma once
#include "tree_store.h"

#include <stdio.h>

must_use int gc_run(const struct tree_store *s, bool dry, FILE *out, struct err *e);
