/*
 * code_digest.h - which program it was, for the audit.
 *
 * SHA-256 of bytes that the door has mapped: no system call, no heap, cannot
 * fail. 0.5 to 3 ms for each MiB, by whether the processor knows SHA: let the run be started first.
 */
#pragma once
#include "defs.h"

enum { CODE_DIGEST_HEX = 64 };

void code_digest(const void *bytes, size_t len, char hex[CODE_DIGEST_HEX + 1]);
