/*
 * output.h - a queue of lines for a client that may read slowly
 */
#pragma once
#include "linked_list.h"
#include "stream_end.h"

/* While more bytes than this are queued, no more requests of the client are read. */
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
	bool   broken;  /* the reader is gone, or memory was short: lines that are added are dropped */
};

void output_open(struct output *ret, int fd); /* takes fd over */
void output_close(struct output *o);

/* Takes text over, which is malloc'ed, and appends a newline. Writes at once what the client takes; lines are never held back to be joined. */
void output_add_line(struct output *o, char *text, size_t len);
/* Writes more of the queue. */
void output_flush(struct output *o);

static inline bool output_waits(const struct output *o)
{
	return o->waiting > 0;
}
