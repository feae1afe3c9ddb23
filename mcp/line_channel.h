/*
 * line_channel.h - one client at the other end of a byte stream: a message a line, as on stdin and stdout.
 *
 * When its bytes end, what it has asked may finish for a moment; then, or when
 * nobody reads any more, mcp->ends is set.
 */
#pragma once
#include "batch.h"
#include "call.h"
#include "lines.h"
#include "output.h"

struct line_channel {
	struct channel     channel; /* first: the operations find the rest behind it */
	struct mcp        *mcp;
	struct stream_end  in;
	struct lines       lines;
	struct output      out;
	struct loop_source reads, writes;
	bool               is_file;                 /* what is read cannot be waited for: a plain file, /dev/null */
	bool               reads_wait, writes_wait; /* the loop waits for them */
	struct loop_timer  again;   /* what is there to be read goes on being read */
	struct loop_timer  patience;
	bool               hung_up; /* the other end was closed while nobody read: what is left is read, or not */
	bool               ended;   /* no more bytes come */
	bool               over;    /* no more requests are taken */
};

/* Takes both descriptors over. l must not move. */
must_use int line_channel_open(struct line_channel *l, struct mcp *m, int in, int out, struct err *e);
/* No more requests are taken; mcp->ends is set soon. May be called twice. */
void         line_channel_end(struct line_channel *l);
void         line_channel_close(struct line_channel *l);
