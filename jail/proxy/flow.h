/*
 * flow.h - one direction of a connection: bytes from one side to the other
 *
 * A receiver that reads slowly stops the reading from the sender: only a pipe or small buffers of bytes wait here.
 * Between two plain sockets the kernel moves the bytes (splice); with TLS or a
 * filter they are copied. End of file is passed on, and the other direction stays open.
 */
#pragma once
#include "buffer.h"
#include "net_report.h"
#include "pipe_pool.h"
#include "side.h"

struct connection;

enum { FLOW_ROOM = 8192 + 256 };
/* As much as one record of TLS: thousands of connections may each have a buffer whose receiver does not read. */
enum { FLOW_BUFFER = 16 * 1024, FLOW_IN_MAX = 2 * 64 * 1024 /* of a filter that needs a whole head */ };

struct flow {
	struct side     *from, *to;
	bool             is_down;             /* to the program */
	bool             is_ended, is_closed; /* from is at end of file; the end was passed to `to` */
	bool             keeps_receiver_open; /* the end of file is not passed to `to` */
	uint64_t         moved, passed;       /* bytes that were read, and written */
	/* without a filter: after so many bytes the flow ends; UINT64_MAX: at end of file */
	uint64_t         left;
	struct side     *failed;              /* which one, when the flow is BROKEN */
	/* for which the flow waits; NULL: it waits for the run's rate, or for nothing */
	struct side     *wait;
	uint32_t         events;
	struct pipe_pair pipe;
	size_t           in_pipe;
	struct buffer    in, out; /* read and not filtered yet; ready to be written */
	/*
	 * Moves bytes from f->in to f->out, which is empty at each call and has room for FLOW_ROOM more bytes than
	 * f->in has. At end of file is_ended is set, and f->in may be empty. False: malformed. A filter that needs no
	 * more bytes sets is_ended itself; one that has no more to do, filter to NULL. NULL: no filter.
	 */
	bool (*filter)(void *owner, struct flow *f);
	void *owner;
};

enum flow_outcome {
	FLOW_WAITS,
	FLOW_CLOSED,
	FLOW_BROKEN, /* a side failed, or was reset */
	FLOW_BAD,    /* the filter refuses it */
	FLOW_STOPPED /* *reason has why */
};

static inline void flow_init(struct flow *f, struct side *from, struct side *to, bool is_down)
{
	*f = (struct flow){ .from = from, .to = to, .is_down = is_down, .left = UINT64_MAX, .pipe = PIPE_NONE };
}

/* Bytes that go first; takes the memory over. */
void flow_put_first_bytes(struct flow *f, struct buffer *first);
/* Moves what can be moved now, up to a bound, so that other connections do not wait long. */
enum flow_outcome flow_pump(struct connection *c, struct flow *f, enum net_reason *reason);
/* Makes the loop wait for the events that both flows need. */
void flow_watch_events(struct connection *c, const struct flow *one, const struct flow *other);
bool flow_is_waiting_for_side(const struct flow *f, const struct side *side);

static inline void flow_done(struct pipe_pool *pool, struct flow *f)
{
	if (f->pipe.in >= 0)
		pipe_pool_put(pool, &f->pipe, f->in_pipe == 0);
	f->in_pipe = 0;
	buffer_free(&f->in);
	buffer_free(&f->out);
}
