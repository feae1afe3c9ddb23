/*
 * reply.h - an outcome as the client gets it: one JSON object, or a text for a model to read.
 */
#pragma once
#include "call.h"
#include "outcome.h"

/*
 * A new reference. Keys of the published servers are always there, if only as null; keys of brig only if they have
 * a value. Output longer than BRIEF_OUTPUT bytes is cut in its middle, a traceback with its own key is not repeated
 * in stderr, and at most BRIEF_REFUSED refused calls are named. wish.detail: all keys, and all output that was kept.
 * wish.echo: the result is appended to stdout.
 */
json_t *reply_json(const struct outcome *o, const struct answer_form *answer_form);
enum { BRIEF_OUTPUT = 10 * 1024, BRIEF_REFUSED = 5 };

/* The first line has how it ended. At most max bytes; malloc'ed, NULL when memory is short. */
char *reply_text(const struct outcome *o, size_t max);

/* Answers the call with the text, followed by the images; the call ends. */
void reply_to_call(struct call *c, const struct outcome *o, const struct answer_form *answer_form);
