/*
 * line_channel.h - one client on a byte stream, as stdin and stdout: a message a line.
 *
 * After end of file, calls under way have a short time to end. Then, or when the client does not read any more,
 * mcp->ends is set.
 */
#pragma once
#include "batch.h"
#include "call.h"
#include "lines.h"
#include "output.h"

struct line_channel {
	struct channel     channel; /* first: a pointer to it is one to the line_channel */
	struct mcp        *mcp;
	struct stream_end  in;
	struct lines       lines;
	struct output      out;
	struct loop_source reads, writes;
	bool               is_file;                 /* epoll does not take what is read: a plain file, /dev/null */
	bool               reads_wait, writes_wait; /* they are in the loop */
	struct loop_timer  again;   /* goes on with the input that is there, as with a plain file */
	struct loop_timer  deadline;
	/* the client has closed its end while no requests were taken; there may be input left */
	bool               hung_up;
	bool               ended;   /* end of file was read */
	bool               over;    /* no more requests are taken */
	bool               refused_early; /* the line that is too long was answered before its end */
};

/* Takes both descriptors over. l must not move. */
must_use int line_channel_open(struct line_channel *l, struct mcp *m, int in, int out, struct err *e);
/* Takes no more requests, and sets mcp->ends soon. May be called twice. */
void         line_channel_request_stop(struct line_channel *l);
void         line_channel_close(struct line_channel *l);
