#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void output_open(struct output *ret, int fd)
{
	*ret = (struct output){ .waiting = 0 };
	TAILQ_INIT(&ret->lines);
	stream_end_open(&ret->end, fd, true);
}

static void drop_first_line(struct output *o)
{
	struct output_line *line = TAILQ_FIRST(&o->lines);

	TAILQ_REMOVE(&o->lines, line, link);
	o->waiting -= line->len - line->sent;
	free(line->text);
	free(line);
}

static void drop_all_lines(struct output *o)
{
	while (!TAILQ_EMPTY(&o->lines))
		drop_first_line(o);
}

void output_close(struct output *o)
{
	drop_all_lines(o);
	stream_end_close(&o->end);
}

static void output_break(struct output *o)
{
	o->broken = true;
	drop_all_lines(o);
}

/* One write() for each line, so that a client can read them apart. false: no more can be written now. */
static bool send_line_part(struct output *o, struct output_line *line)
{
	ssize_t n = stream_end_write(&o->end, line->text + line->sent, line->len - line->sent);

	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0 && errno != EAGAIN)
		output_break(o);
	if (n < 0)
		return false;
	line->sent += (size_t)n;
	o->waiting -= (size_t)n;
	if (line->sent == line->len)
		drop_first_line(o);
	return true;
}

void output_flush(struct output *o)
{
	while (!TAILQ_EMPTY(&o->lines) && send_line_part(o, TAILQ_FIRST(&o->lines)))
		;
}

void output_add_line(struct output *o, char *text, size_t len)
{
	struct output_line *line    = calloc(1, sizeof *line);
	char               *with_nl = realloc(text, len + 1);

	if (o->broken || !line || !with_nl) {
		free(with_nl ? with_nl : text);
		free(line);
		if (!o->broken)
			output_break(o);
		return;
	}
	with_nl[len] = '\n'; /* in the place of the NUL */
	*line = (struct output_line){ .len = len + 1, .text = with_nl };
	TAILQ_INSERT_TAIL(&o->lines, line, link);
	o->waiting += line->len;
	output_flush(o);
}
