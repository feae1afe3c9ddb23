/*
 * output.h - lines on their way to a client that may be slow: what it does not take yet waits here.
 */
#pragma once
#include "stream_end.h"

#include <sys/queue.h>

/* More than this waiting, and the client's requests are not read until it has taken some of it. */
#define OUTPUT_ENOUGH (256 * KIB)

struct output_line {
	TAILQ_ENTRY(output_line) link;
	size_t len, sent;
	char  *text; /* owned */
};

struct output {
	struct stream_end end;
	TAILQ_HEAD(output_lines, output_line) lines;
	size_t waiting; /* bytes */
	bool   broken;  /* nobody reads any more: what is added is forgotten */
};

void output_open(struct output *ret, int fd); /* takes fd over */
void output_close(struct output *o);

/* Takes text over and writes a newline after it; sends what can be sent at once. A line never waits for those behind it. */
void output_add(struct output *o, char *text, size_t len);
/* More of what waits. */
void output_send(struct output *o);

static inline bool output_waits(const struct output *o)
{
	return o->waiting > 0;
}
