/*
 * api_check.h - brig-api --check: runs one program as for a client, and prints what a user must know.
 */
#pragma once
#include "api.h"

/* -1 with *e, which has what to do. */
must_use int api_check_run(struct api *a, FILE *out, struct err *e);
