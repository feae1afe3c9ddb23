/*
 * stderr_line.h - writes a line to standard error, unless that would wait
 *
 * When the pipe is full, the line is dropped: a reader that stops reading could
 * otherwise stop a service at a moment of its choice (CVE-2026-3888 used that to
 * win a race).
 */
#pragma once
#include "defs.h"

/* Cut to 999 bytes, in one write. fmt has the newline. */
void stderr_print_line(const char *fmt, ...) printf_like(1, 2);
