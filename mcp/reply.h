/*
 * reply.h - an outcome as the client gets it: one object, or a text made for a model to read.
 */
#pragma once
#include "call.h"
#include "outcome.h"

/*
 * A new reference. The keys of the published servers are always there, null or not; of ours those that say something.
 * Output longer than BRIEF_OUTPUT bytes is cut in its middle, a traceback that is one already is not in stderr once more.
 * Of refused calls BRIEF_REFUSED are named. wish.detail: all keys, and all that was kept. wish.echo: the result is appended to stdout.
 */
json_t *reply_json(const struct outcome *o, const struct answer_wish *wish);
enum { BRIEF_OUTPUT = 10 * 1024, BRIEF_REFUSED = 5 };

/* First line: how it ended. At most max bytes; malloc'ed, NULL when memory is short. */
char *reply_text(const struct outcome *o, size_t max);

/* Answers the call, which ends: the text, and the images behind it. */
void reply(struct call *c, const struct outcome *o, const struct answer_wish *wish);
