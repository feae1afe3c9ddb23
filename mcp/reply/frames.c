#define _GNU_SOURCE
#include "frames.h"

#include "defs.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_LEAST = 3 }; /* a row of fewer frames is kept */

static size_t line_length(const char *text)
{
	size_t n = strcspn(text, "\n");

	return n + (text[n] == '\n');
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static bool is_library(const char *line)
{
	return begins(line, "  File \"/usr/") || begins(line, "  File \"<frozen ");
}

/* The length of a frame: its line, the source line, and what is printed below that. */
static size_t frame_length(const char *text)
{
	size_t n = line_length(text);

	while (begins(text + n, "    "))
		n += line_length(text + n);
	return n;
}

/* The length of the row of library frames that begins here, their number, and where the last one begins. */
static size_t row_length(const char *text, size_t *frames, size_t *last)
{
	size_t n = 0;

	for (*frames = 0; is_library(text + n); ++*frames) {
		*last = n;
		n += frame_length(text + n);
	}
	return n;
}

char *frames_brief(const char *traceback)
{
	char  *text = NULL;
	size_t len, frames, last = 0, n;
	FILE  *out = open_memstream(&text, &len);

	for (; out && *traceback; traceback += n) {
		n = row_length(traceback, &frames, &last);
		if (frames >= ROW_LEAST) {
			fprintf(out, "  [... %zu frames of libraries ...]\n", frames - 1);
			fwrite(traceback + last, 1, n - last, out);
		} else {
			n = n ? n : line_length(traceback);
			fwrite(traceback, 1, n, out);
		}
	}
	if (out)
		fclose(out);
	return text;
}
