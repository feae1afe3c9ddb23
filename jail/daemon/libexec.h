/* libexec.h - brig's own programs that are executed for others: beside the caller's, or where they are installed */
#pragma once
#include "err.h"
#include "place.h"

/* To be executed, not read; the caller's descriptor. -1 with *e. */
must_use int libexec_open(const struct places *places, const char *name, struct err *e);
