/*
 * stream.h - reads one stream of a program, and bounds what is kept of it.
 *
 * The first `keep` bytes are kept (or passed on); the rest is read and counted,
 * so that the program does not block. Beyond eight times `keep` the caller has
 * to end the run. The last bytes of what is not kept can be kept in `tail`.
 * The bytes are hostile, and are not looked at.
 */
#pragma once
#include "defs.h"
#include "stream_rest.h"

struct stream {
	int      fd;    /* the reading end; -1 at end of file, unless it is lent */
	bool     lent;  /* its owner closes it, after removing it from an epoll */
	bool     ended;
	int      to;    /* the bytes are written there at once; -1: into data */
	uint64_t keep, seen;
	unsigned little; /* stream_rest.h */
	double   rests_ms; /* for the caller: do not read before that moment */
	char    *data;
	size_t   len, room;
	char    *tail;           /* memory of the caller for the last bytes beyond keep, or NULL */
	size_t   tail_len, tail_max;
	int      broken; /* errno of the write to `to` that failed, or of the read; 0: none did */
	bool     unread; /* it was the read */
};

enum stream_answer { STREAM_GOES_ON, STREAM_FLOOD, STREAM_BROKEN };

/* Reads once. Call when fd is readable. */
must_use enum stream_answer stream_read(struct stream *s);
/* What is there, without waiting for more and without end. */
void                        stream_drain(struct stream *s);
void                        stream_done(struct stream *s);

static inline bool stream_is_truncated(const struct stream *s)
{
	return s->seen > s->keep || s->unread;
}
