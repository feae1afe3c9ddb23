/*
 * reply.h - an outcome as the client gets it: one object, or a text made for a model to read.
 */
#pragma once
#include "call.h"
#include "outcome.h"

/* Every key is always there; a new reference. echo: the result is appended to stdout. */
json_t *reply_json(const struct outcome *o, bool echo);

/* First line: how it ended. At most max bytes; malloc'ed, NULL when memory is short. */
char *reply_text(const struct outcome *o, size_t max);

/* Answers the call, which ends: the text, and the images behind it. */
void reply(struct call *c, const struct outcome *o, bool as_text, bool echo);
