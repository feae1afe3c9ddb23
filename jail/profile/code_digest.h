/*
 * code_digest.h - SHA-256 in hex, of programs for the audit, and of filters and configurations.
 *
 * No system call, no heap, cannot fail. Takes 0.5 to 3 ms for each MiB, depending on
 * whether the processor has SHA instructions: start the run first.
 */
#pragma once
#include "defs.h"

enum { CODE_DIGEST_HEX = 64 };

void code_compute_digest(const void *bytes, size_t len, char hex[CODE_DIGEST_HEX + 1]);
