/*
 * stream.h - what comes out of a jail, bounded.
 *
 * The first `keep` bytes are kept (or passed on), the rest is read and counted
 * so that the program does not block, and beyond eight times `keep` the run is
 * to be ended. Of what is not kept, the last bytes can be had all the same.
 * Nothing is looked at: the bytes are hostile.
 */
#pragma once
#include "defs.h"
#include "stream_rest.h"

struct stream {
	int      fd;    /* the reading end; -1 at end of file, unless it is lent */
	bool     lent;  /* who lent it closes it, after an epoll has forgotten it */
	bool     ended;
	int      to;    /* where the bytes go at once; -1: into data */
	uint64_t keep, seen;
	unsigned little; /* stream_rest.h */
	double   rests_ms; /* the caller's: it is not read before that moment */
	char    *data;
	size_t   len, room;
	char    *tail;           /* room of the caller's for the last bytes beyond keep; NULL: not wanted */
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
