#include "events.h"

#include <stdlib.h>
#include <string.h>

static bool append(char **to, size_t *len, size_t *room, size_t max, const char *bytes, size_t n)
{
	size_t wanted = *len + n + 1;
	char  *larger;

	if (wanted > max + 64)
		return false;
	if (wanted > *room) {
		if (!(larger = realloc(*to, wanted * 2)))
			return false;
		*to   = larger;
		*room = wanted * 2;
	}
	memcpy(*to + *len, bytes, n);
	*len += n;
	return true;
}

static void dispatch(struct events *e)
{
	if (e->has_data && e->data_len)
		e->event(e->owner, e->data, e->data_len);
	e->data_len = 0;
	e->has_data = false;
}

/* Of what a line can say, only its data matters here. */
static bool take_line(struct events *e)
{
	static const char field[] = "data:";
	const char       *value   = e->line + sizeof field - 1;
	size_t            n       = e->line_len;

	e->line_len = 0;
	if (!n) {
		dispatch(e);
		return true;
	}
	if (n < sizeof field - 1 || memcmp(e->line, field, sizeof field - 1) != 0)
		return true;
	n -= sizeof field - 1;
	if (n && *value == ' ') {
		value++;
		n--;
	}
	if (e->has_data && !append(&e->data, &e->data_len, &e->data_room, e->max, "\n", 1))
		return false;
	e->has_data = true;
	return append(&e->data, &e->data_len, &e->data_room, e->max, value, n);
}

bool events_take(struct events *e, const char *bytes, size_t len)
{
	const char *end = bytes + len;

	while (bytes < end) {
		size_t n = 0;

		if (e->after_return && *bytes == '\n')
			bytes++;
		e->after_return = false;
		while (bytes + n < end && bytes[n] != '\n' && bytes[n] != '\r')
			n++;
		if (!append(&e->line, &e->line_len, &e->line_room, e->max, bytes, n))
			return false;
		bytes += n;
		if (bytes == end)
			break;
		e->after_return = *bytes++ == '\r';
		if (!take_line(e))
			return false;
	}
	return true;
}

void events_done(struct events *e)
{
	free(e->line);
	free(e->data);
	e->line = e->data = NULL;
}
