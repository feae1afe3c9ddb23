#define _GNU_SOURCE
#include "lines.h"

#include <stdlib.h>
#include <string.h>

/* A larger buffer, which one long line has needed, is freed as soon as it is empty. */
#define KEPT (128 * KIB)

char *lines_reserve(struct lines *l, size_t wanted)
{
	char *larger;

	if (l->begin == l->end) {
		l->begin = l->end = l->seen = 0;
		if (l->cap > KEPT)
			lines_done(l);
	}
	if (l->begin) {
		memmove(l->data, l->data + l->begin, l->end - l->begin);
		l->end -= l->begin;
		l->begin = 0;
	}
	if (l->cap - l->end < wanted) {
		size_t cap = (l->end + wanted) * 2;

		if (!(larger = realloc(l->data, cap)))
			return NULL;
		l->data = larger;
		l->cap  = cap;
	}
	return l->data + l->end;
}

void lines_add_filled(struct lines *l, size_t n)
{
	l->end += n;
}

/* Removes a byte order mark at the beginning and \r at the end. */
static void trim_line(const char **line, size_t *len)
{
	if (*len >= 3 && memcmp(*line, "\xef\xbb\xbf", 3) == 0) {
		*line += 3;
		*len -= 3;
	}
	if (*len && (*line)[*len - 1] == '\r')
		--*len;
}

static bool is_blank_line(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (line[i] != ' ' && line[i] != '\t')
			return false;
	return true;
}

/* The bytes [begin, begin + len) are of a line that is too long. */
static enum lines_next skip_too_long_line(struct lines *l, size_t len)
{
	bool is_told = l->skips;

	if (!is_told)
		l->id = (struct id_scan){ 0 };
	id_scan_feed(&l->id, l->data + l->begin, len);
	l->begin += len;
	l->seen  = 0;
	l->skips = true;
	return is_told ? LINES_NONE : LINES_TOO_LONG;
}

/* Consumes len bytes, and the newline after them if there is one. LINES_NONE: they are blank. */
static enum lines_next take_buffered_line(struct lines *l, size_t len, size_t newline, const char **ret,
					  size_t *ret_len)
{
	if (l->skips) {
		(void)skip_too_long_line(l, len);
		l->begin += newline;
		l->skips = false;
		return LINES_END_OF_TOO_LONG;
	}
	*ret     = l->data + l->begin;
	*ret_len = len;
	trim_line(ret, ret_len);
	if (*ret_len > l->max)
		return skip_too_long_line(l, len); /* its newline is left, and ends it */
	l->begin += len + newline;
	l->seen = 0;
	return is_blank_line(*ret, *ret_len) ? LINES_NONE : LINES_LINE;
}

enum lines_next lines_next(struct lines *l, const char **ret, size_t *len)
{
	enum lines_next found;
	char           *newline;

	while (l->begin < l->end) {
		newline = memchr(l->data + l->begin + l->seen, '\n', l->end - l->begin - l->seen);
		if (!newline) { /* is it too long already? A byte order mark and \r do not count */
			l->seen = l->end - l->begin;
			return l->skips || l->seen > l->max + 4 ? skip_too_long_line(l, l->seen) : LINES_NONE;
		}
		found = take_buffered_line(l, (size_t)(newline - l->data) - l->begin, 1, ret, len);
		if (found != LINES_NONE)
			return found;
	}
	return LINES_NONE;
}

enum lines_next lines_take_rest(struct lines *l, const char **ret, size_t *len)
{
	return l->begin < l->end || l->skips ? take_buffered_line(l, l->end - l->begin, 0, ret, len) : LINES_NONE;
}

void lines_done(struct lines *l)
{
	free(l->data);
	l->data = NULL;
	l->cap = l->begin = l->end = l->seen = 0;
}
