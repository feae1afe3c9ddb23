/* policy_file.h - policy files on disk: NAME.policy in the first folder that has it. */
#pragma once
#include "policy_bundle.h"

/* A policy_read_fn; the caller frees *text. context: const char *const *, folders in the order of search, NULL-terminated; "" is skipped. */
must_use int policy_file_read(void *context, const char *name, char **text, size_t *len, struct err *e);
