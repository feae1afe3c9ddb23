#define _GNU_SOURCE
#include "log.h"

#include "clock.h"
#include "stderr_line.h"
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINES_A_SECOND = 20 };

/* The number of lines that were left out is logged before the next line. */
static bool log_rate_allows_line(struct log *l)
{
	double now = clock_ms(CLOCK_MONOTONIC);

	if (now - l->since_ms > 1000) {
		if (l->suppressed)
			stderr_print_line("brigd: %u more lines were left out\n", l->suppressed);
		*l = (struct log){ .since_ms = now };
	}
	if (l->lines == LINES_A_SECOND) {
		l->suppressed++;
		return false;
	}
	l->lines++;
	return true;
}

void log_line(struct log *l, const char *fmt, ...)
{
	char    line[1000] = "brigd: ";
	size_t  n          = strlen(line);
	va_list ap;

	if (!log_rate_allows_line(l))
		return;
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof line - n - 1, fmt, ap);
	va_end(ap);
	text_make_plain(line);
	strcat(line, "\n");
	stderr_print_line("%s", line);
}
