/*
 * gc.h - trees that have no name and no user go.
 *
 * A tree without a name is an older version of a rootfs, or its name was
 * removed. One that somebody uses stays, whatever its names.
 */
#pragma once
#include "shelf.h"

#include <stdio.h>

must_use int gc_run(const struct shelf *s, bool dry, FILE *out, struct err *e);
