#define _GNU_SOURCE
#include "log.h"

#include "clock.h"
#include "say.h"
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINES_A_SECOND = 20 };

/* The number of lines that were left out is logged before the next line. */
static bool has_room(struct log *l)
{
	double now = clock_ms(CLOCK_MONOTONIC);

	if (now - l->since_ms > 1000) {
		if (l->kept_back)
			say("brigd: %u more lines were left out\n", l->kept_back);
		*l = (struct log){ .since_ms = now };
	}
	if (l->said == LINES_A_SECOND) {
		l->kept_back++;
		return false;
	}
	l->said++;
	return true;
}

void log_say(struct log *l, const char *fmt, ...)
{
	char    line[1000] = "brigd: ";
	size_t  n          = strlen(line);
	va_list ap;

	if (!has_room(l))
		return;
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof line - n - 1, fmt, ap);
	va_end(ap);
	text_make_plain(line);
	strcat(line, "\n");
	say("%s", line);
}
