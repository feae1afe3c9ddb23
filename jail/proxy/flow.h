/*
 * flow.h - one direction of a connection: bytes from one side to the other
 *
 * A side that reads slowly stops the reading of the other one: what waits here is one pipe or one buffer.
 * Between two plain sockets the kernel moves them (splice); otherwise, or with a
 * filter, they are copied. The end of one side is passed on, and the other direction stays.
 */
#pragma once
#include "buffer.h"
#include "net_report.h"
#include "pipe_pool.h"
#include "side.h"

struct connection;

enum { FLOW_BUFFER = 64 * 1024 };

struct flow {
	struct side     *from, *to;
	bool             is_down;             /* to the program */
	bool             is_ended, is_closed; /* from said its end; to was told */
	bool             keeps_to;            /* to is not told of the end */
	uint64_t         moved;               /* bytes that were read */
	struct side     *failed;              /* of a flow that is BROKEN */
	struct side     *wait;                /* for what the flow waits; NULL: for the run's rate, or for nothing any more */
	uint32_t         events;
	struct pipe_pair pipe;
	size_t           in_pipe;
	struct buffer    in, out; /* read and not filtered; to be written */
	/*
	 * From f->in to f->out, which is empty; at the end is_ended is set, and in may be. False: malformed. A filter that needs no
	 * more of from sets is_ended itself.
	 */
	bool (*filter)(void *owner, struct flow *f);
	void *owner;
};

enum flow_outcome {
	FLOW_WAITS,
	FLOW_CLOSED,
	FLOW_BROKEN, /* a side failed, or was reset */
	FLOW_BAD,    /* the filter refuses it */
	FLOW_STOPPED /* *reason */
};

static inline void flow_init(struct flow *f, struct side *from, struct side *to, bool is_down)
{
	*f = (struct flow){ .from = from, .to = to, .is_down = is_down, .pipe = PIPE_NONE };
}

/* These go first; taken over. */
void flow_put(struct flow *f, struct buffer *first);
/* Moves what can be moved now, but not so much that others wait long. */
enum flow_outcome flow_pump(struct connection *c, struct flow *f, enum net_reason *reason);
/* What both flows wait for, in the loop. */
void flow_want(struct connection *c, const struct flow *one, const struct flow *other);
bool flow_waits_for(const struct flow *f, const struct side *side);

static inline void flow_done(struct pipe_pool *pool, struct flow *f)
{
	if (f->pipe.in >= 0)
		pipe_pool_put(pool, &f->pipe, f->in_pipe == 0);
	f->in_pipe = 0;
	buffer_free(&f->in);
	buffer_free(&f->out);
}
