/*
 * stream.h - reads one stream of a program, and bounds what is kept of it.
 *
 * The first `keep` bytes are kept (or passed on); the rest is read and counted,
 * so that the program does not block. Beyond eight times `keep` the result is
 * STREAM_FLOOD, and the caller must end the run. The last bytes beyond `keep`
 * can be kept in `tail`. The bytes are hostile, and are not interpreted.
 */
#pragma once
#include "defs.h"
#include "stream_rest.h"

#include <sys/types.h>

struct stream {
	int      fd;    /* the reading end; closed and set to -1 at end of file, unless it is lent */
	bool     lent;  /* the caller closes fd, after it has removed it from an epoll */
	bool     ended;
	int      to;    /* the bytes are written to this descriptor at once; -1: kept in data */
	uint64_t keep, seen;
	unsigned little; /* stream_rest.h */
	double   rests_ms; /* set by the caller (CLOCK_MONOTONIC): it does not read before; 0: reads at once */
	char    *data;
	size_t   len, room;
	char    *tail;           /* memory of the caller for the last bytes beyond keep, or NULL */
	size_t   tail_len, tail_max;
	int      broken; /* errno of the write to `to` that failed, or of the read; 0: none did */
	bool     unread; /* broken is the errno of the read */
	struct stream_last end; /* only with `to`: what is kept is in data */
};

enum stream_answer { STREAM_GOES_ON, STREAM_FLOOD, STREAM_BROKEN };

/*
 * As read(), but never waits: EAGAIN. O_NONBLOCK does not suffice for a pipe of a session: the jail made it, and a program there can
 * have the same end, clear the flag and read what poll() has reported. Before Linux 6.4 there is only the flag.
 */
must_use ssize_t stream_read_now(int fd, void *bytes, size_t len);
/* Reads once. Call when fd is readable. */
must_use enum stream_answer stream_read(struct stream *s);
/* Reads what the pipe has, and does not wait for more; stops at STREAM_FLOOD. */
void                        stream_drain(struct stream *s);
void                        stream_done(struct stream *s);

static inline bool stream_is_truncated(const struct stream *s)
{
	return s->seen > s->keep || s->unread;
}
