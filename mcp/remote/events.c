#include "events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool append_bounded(char **to, size_t *len, size_t *room, size_t max, const char *bytes, size_t n)
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

/* The value of this field, or NULL if the line has another one; *n: the length of the line, then of the value. */
static const char *event_field_value(const char *line, size_t *n, const char *field)
{
	size_t skip = strlen(field);

	if (*n < skip || memcmp(line, field, skip) != 0)
		return NULL;
	skip += *n > skip && line[skip] == ' ';
	*n -= skip;
	return line + skip;
}

/* Fields other than data and event are ignored. */
static bool parse_event_line(struct events *e)
{
	size_t      n = e->line_len;
	const char *value;

	e->line_len = 0;
	if (!n) {
		if (e->has_data && e->data_len)
			e->event(e->owner, e->data, e->data_len);
		e->data_len = 0;
		e->has_data = false;
		*e->name    = 0;
		return true;
	}
	if ((value = event_field_value(e->line, &n, "event:"))) {
		snprintf(e->name, sizeof e->name, "%.*s", (int)(n < sizeof e->name ? n : sizeof e->name), value);
		return true;
	}
	if (!(value = event_field_value(e->line, &n, "data:")))
		return true;
	if (e->has_data && !append_bounded(&e->data, &e->data_len, &e->data_room, e->max, "\n", 1))
		return false;
	e->has_data = true;
	return append_bounded(&e->data, &e->data_len, &e->data_room, e->max, value, n);
}

bool events_parse(struct events *e, const char *bytes, size_t len)
{
	const char *end = bytes + len;

	while (bytes < end) {
		size_t n = 0;

		if (e->after_return && *bytes == '\n')
			bytes++;
		e->after_return = false;
		while (bytes + n < end && bytes[n] != '\n' && bytes[n] != '\r')
			n++;
		if (!append_bounded(&e->line, &e->line_len, &e->line_room, e->max, bytes, n))
			return false;
		bytes += n;
		if (bytes == end)
			break;
		e->after_return = *bytes++ == '\r';
		if (!parse_event_line(e))
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
