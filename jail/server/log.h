/*
 * log.h - messages to the administrator, one line at a time, on standard error.
 *
 * Never waits for the process that reads them. So that a client cannot flood the log,
 * lines beyond a number in one second are only counted, and the count is logged.
 */
#pragma once
#include "defs.h"

struct log {
	double   since_ms; /* CLOCK_MONOTONIC: when the present second began */
	unsigned lines, suppressed;
};

void log_line(struct log *l, const char *fmt, ...) printf_like(2, 3);
