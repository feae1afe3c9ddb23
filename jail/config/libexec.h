/* libexec.h - finds brig's own executables: beside the caller's, or where they are installed */
#pragma once
#include "err.h"
#include "paths.h"

/* An O_PATH descriptor for execveat(), which the caller owns. -1 with *e. */
must_use int libexec_open(const struct brig_paths *places, const char *name, struct err *e);
