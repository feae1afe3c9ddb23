/*
 * tap.h - one line per promise: "ok 3 - pids zero is refused".
 *
 * A name is a sentence. tap_ok() returns its condition, tap_done() is the exit
 * status. The runner (tests/conftest.py) makes a test of every line.
 */
#pragma once
#include "defs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_count, tap_failed;

static inline bool printf_like(2, 3) tap_ok(bool ok, const char *name, ...)
{
	va_list ap;

	printf("%s %d - ", ok ? "ok" : "not ok", ++tap_count);
	va_start(ap, name);
	vprintf(name, ap);
	va_end(ap);
	putchar('\n');
	tap_failed += !ok;
	return ok;
}

/* Shows both when they differ. */
static inline bool tap_is(const char *got, const char *want, const char *name)
{
	bool ok = strcmp(got ? got : "(null)", want) == 0;

	tap_ok(ok, "%s", name);
	if (!ok)
		printf("#   got:  %s\n#   want: %s\n", got ? got : "(null)", want);
	return ok;
}

static inline int tap_done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
