/*
 * log.h - what the administrator should hear, one line at a time, on standard error.
 *
 * Never waits for who reads it, and not more than a stranger should be able to
 * cause: what is too much in a second is counted, and the number told.
 */
#pragma once
#include "defs.h"

struct log {
	double   since_ms; /* this second's */
	unsigned said, kept_back;
};

void log_say(struct log *l, const char *fmt, ...) printf_like(2, 3);
