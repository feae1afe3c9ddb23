#include "color.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool wants_color(FILE *out)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return (!no || !*no) && (!term || strcmp(term, "dumb") != 0) && isatty(fileno(out));
}

const char *color_start_code(FILE *out, enum color color)
{
	static const char *const begins[] = {
		[COLOR_GOOD]    = "\033[32m",
		[COLOR_WARNING] = "\033[33m",
		[COLOR_BAD]     = "\033[31m",
		[COLOR_HEADING] = "\033[1m",
	};

	return wants_color(out) ? begins[color] : "";
}

const char *color_reset_code(FILE *out)
{
	return wants_color(out) ? "\033[0m" : "";
}
