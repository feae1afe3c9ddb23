/* fuzz_answer.c - a number of descriptors, then any bytes, as an answer of the server: what a client accepts has every key of its row, and what it prints is a line */
#include "client_protocol.h"
#include "fuzz.h"
#include "shape.h"
#include "summary.h"

static const struct shape *shape_of(const struct protocol_answer *a)
{
	switch (a->kind) {
	case ANSWER_REPLY:
		return reply_shape(a->reply);
	case ANSWER_EVENT:
		return event_shape(a->event);
	case ANSWER_ERROR:
		return error_shape();
	}
	return NULL;
}

/* The record is an object of any keys: a terminal and a shell get a line and a status all the same. */
static void must_be_printable(const json_t *record)
{
	char  *line = NULL;
	size_t len  = 0;
	FILE  *out  = open_memstream(&line, &len);

	must(out);
	summary_print(record, "", out);
	fclose(out);
	must(len > 0 && line[len - 1] == '\n' && strlen(line) == len);
	line[len - 1] = 0;
	must_about(line, text_is_utf8(line, len - 1) && !text_has_control(line));
	must_about(line, summary_exit_status(record) >= 0 && summary_exit_status(record) <= 255);
	free(line);
}

static void must_hold(const struct protocol_answer *a, size_t fds)
{
	const struct shape *shape = shape_of(a);
	bool                started = a->kind == ANSWER_EVENT && a->event == EVENT_started;

	must(shape);
	for (; shape->name; shape++)
		must_about(shape->name, shape->need == SHAPE_MAY || json_object_get(a->source, shape->name));
	if (a->kind == ANSWER_EVENT && a->event == EVENT_ended)
		must_be_printable(json_object_get(a->source, "record"));
	must(fds == (started ? json_array_size(json_object_get(a->source, "streams")) : a->kind == ANSWER_REPLY && a->reply == REQUEST_files));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_answer a = { 0 };
	struct err    e = { 0 };

	if (size == 0)
		return 0;
	if (protocol_parse_answer(&a, data + 1, size - 1, data[0] & 31, &e) < 0)
		must_say_why(&e);
	else
		must_hold(&a, data[0] & 31);
	return 0;
}
