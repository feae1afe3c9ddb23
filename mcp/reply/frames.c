#define _GNU_SOURCE
#include "frames.h"

#include "text.h"

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

/*
 * The length of the library frames that begin here, one after the other, their number, and where the last one begins.
 */
static size_t library_frames_length(const char *text, size_t *frames, size_t *last)
{
	size_t n = 0;

	for (*frames = 0; begins_with(text + n, "  File \"/usr/") || begins_with(text + n, "  File \"<frozen ");
	     ++*frames) {
		*last = n;
		n += line_length(text + n);
		while (begins_with(text + n, "    ")) /* the source line, and what is printed below that */
			n += line_length(text + n);
	}
	return n;
}

char *frames_shorten_traceback(const char *traceback)
{
	char  *text = NULL;
	size_t len, frames, last = 0, n;
	FILE  *out = open_memstream(&text, &len);

	for (; out && *traceback; traceback += n) {
		n = library_frames_length(traceback, &frames, &last);
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
