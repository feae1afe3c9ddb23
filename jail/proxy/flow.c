#define _GNU_SOURCE
#include "flow.h"

#include "packet.h"
#include "proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>

enum { TURNS = 16 };

/* What the pump does after a step: take another one, or return. */
enum step { STEP_AGAIN, STEP_WAIT, STEP_CLOSED, STEP_BROKEN, STEP_BAD, STEP_STOPPED };

void flow_put_first_bytes(struct flow *f, struct buffer *first)
{
	*(f->filter ? &f->in : &f->out) = *first;
	*first                          = (struct buffer){ 0 };
}

bool flow_is_waiting_for_side(const struct flow *f, const struct side *side)
{
	return f->wait == side && side->source.fd >= 0;
}

static enum step flow_wait_for_side(struct flow *f, struct side *side, uint32_t events)
{
	f->wait   = side;
	f->events = events;
	return STEP_WAIT;
}

static enum step fail_on_side(struct flow *f, struct side *side)
{
	f->failed = side;
	return STEP_BROKEN;
}

/* --- bytes, counted when they are read --- */

static void count_read_bytes(struct connection *c, struct flow *f, size_t n)
{
	f->moved += n;
	if (f->left != UINT64_MAX)
		f->left -= n;
	f->is_ended |= f->left == 0;
	run_spend_bytes(c->run, n);
	if (f->is_down)
		report_line_add_bytes_in(&c->line, n);
	else
		report_line_add_bytes_out(&c->line, n);
	connection_set_deadline(c, c->is_half_closed ? DEADLINE_HALF : DEADLINE_IDLE);
}

/* 0: wait_or_stop() is to be returned. */
static size_t allowed_bytes(struct connection *c, const struct flow *f, size_t most, enum net_reason *reason)
{
	size_t n = run_bytes_allowed(c->run, reason);

	most = most < f->left ? most : (size_t)f->left;
	return n < most ? n : most;
}

static enum step wait_or_stop(struct flow *f, enum net_reason reason)
{
	return reason == NET_REASON_NONE ? flow_wait_for_side(f, NULL, 0) : STEP_STOPPED;
}

/* --- the end --- */

static enum step close_receiver(struct flow *f)
{
	enum tls_outcome result = TLS_MOVED;

	f->to->is_cut |= f->from->tls && tls_end_is_cut(f->from->tls);
	if (!f->keeps_receiver_open)
		result = side_finish(f->to);
	if (result == TLS_WANT_READ || result == TLS_WANT_WRITE)
		return flow_wait_for_side(f, f->to, result == TLS_WANT_READ ? EPOLLIN : EPOLLOUT);
	f->is_closed = true;
	return STEP_CLOSED;
}

/* --- copied --- */

static enum step step_after_outcome(struct flow *f, struct side *side, enum tls_outcome outcome)
{
	switch (outcome) {
	case TLS_MOVED:
		return STEP_AGAIN;
	case TLS_WANT_READ:
		return flow_wait_for_side(f, side, EPOLLIN);
	case TLS_WANT_WRITE:
		return flow_wait_for_side(f, side, EPOLLOUT);
	case TLS_END:
	case TLS_FAILED:
		break;
	}
	return fail_on_side(f, side);
}

static enum step write_receiver(struct flow *f)
{
	size_t           moved  = 0;
	enum tls_outcome result = side_write(f->to, buffer_at(&f->out), buffer_left(&f->out), &moved);

	if (result == TLS_MOVED) {
		buffer_take(&f->out, moved);
		f->passed += moved;
	}
	return step_after_outcome(f, f->to, result);
}

static enum step read_sender(struct connection *c, struct flow *f, enum net_reason *reason)
{
	struct buffer   *to    = f->filter ? &f->in : &f->out;
	size_t           moved = 0, n;
	enum tls_outcome result;

	if ((!to->at && !buffer_make(to, FLOW_BUFFER)) || !buffer_grow(to, f->filter ? FLOW_IN_MAX : FLOW_BUFFER)) {
		*reason = NET_REASON_NO_MEMORY;
		return STEP_STOPPED;
	}
	n = allowed_bytes(c, f, to->room - to->len, reason);
	if (n == 0)
		return wait_or_stop(f, *reason);
	result = side_read(f->from, to->at + to->len, n, &moved);
	if (result == TLS_END) {
		f->is_ended = true;
		return STEP_AGAIN;
	}
	if (result == TLS_MOVED) {
		to->len += moved;
		count_read_bytes(c, f, moved);
	}
	return step_after_outcome(f, f->from, result);
}

static enum step run_filter(struct flow *f)
{
	size_t before = buffer_left(&f->in);

	if (f->out.room < before + FLOW_ROOM && !buffer_make(&f->out, before + FLOW_ROOM))
		return fail_on_side(f, f->to);
	if (!f->filter(f->owner, f))
		return STEP_BAD;
	if (buffer_left(&f->out) || buffer_left(&f->in) != before)
		return STEP_AGAIN;
	return f->is_ended ? close_receiver(f) : STEP_WAIT;
}

static enum step copy_step(struct connection *c, struct flow *f, enum net_reason *reason)
{
	enum step step;

	if (buffer_left(&f->out))
		return write_receiver(f);
	if (f->filter && (buffer_left(&f->in) || f->is_ended)) {
		step = run_filter(f);
		if (step != STEP_WAIT || f->is_ended)
			return step;
	} else if (f->is_ended) {
		return close_receiver(f);
	}
	step = read_sender(c, f, reason);
	if (step == STEP_WAIT && buffer_left(&f->out) == 0) /* an idle direction keeps no buffer */
		buffer_free(&f->out);
	if (step == STEP_WAIT && buffer_left(&f->in) == 0)
		buffer_free(&f->in);
	return step;
}

/* --- moved by the kernel --- */

static enum step splice_pipe_to_receiver(struct flow *f)
{
	ssize_t n = splice(f->pipe.out, NULL, f->to->source.fd, NULL, f->in_pipe, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

	if (n < 0)
		return errno == EAGAIN ? flow_wait_for_side(f, f->to, EPOLLOUT) : fail_on_side(f, f->to);
	f->in_pipe -= (size_t)n;
	f->passed += (size_t)n;
	return STEP_AGAIN;
}

static enum step splice_sender_to_pipe(struct connection *c, struct flow *f, enum net_reason *reason)
{
	size_t  n = allowed_bytes(c, f, PIPE_BYTES, reason);
	ssize_t moved;

	if (n == 0)
		return wait_or_stop(f, *reason);
	if (f->pipe.in < 0 && !pipe_pool_get(&connection_proxy(c)->pipes, &f->pipe)) {
		*reason = NET_REASON_NO_MEMORY;
		return STEP_STOPPED;
	}
	moved = splice(f->from->source.fd, NULL, f->pipe.in, NULL, n, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (moved > 0) {
		f->in_pipe = (size_t)moved;
		count_read_bytes(c, f, (size_t)moved);
		return STEP_AGAIN;
	}
	pipe_pool_put(&connection_proxy(c)->pipes, &f->pipe, true);
	if (moved == 0)
		f->is_ended = true;
	else if (errno != EAGAIN)
		return fail_on_side(f, f->from);
	else if (packet_is_readable(
			 f->from->source.fd)) /* splice() stops before an urgent byte, for ever; recv() passes
							 it over */
		return read_sender(c, f, reason);
	return moved == 0 ? STEP_AGAIN : flow_wait_for_side(f, f->from, EPOLLIN);
}

static enum step splice_step(struct connection *c, struct flow *f, enum net_reason *reason)
{
	if (buffer_left(&f->out))
		return write_receiver(f);
	if (f->in_pipe)
		return splice_pipe_to_receiver(f);
	return f->is_ended ? close_receiver(f) : splice_sender_to_pipe(c, f, reason);
}

/* --- both --- */

enum flow_outcome flow_pump(struct connection *c, struct flow *f, enum net_reason *reason)
{
	bool      copies = f->filter || f->from->tls || f->to->tls;
	enum step step   = STEP_AGAIN;

	*reason = NET_REASON_NONE;
	if (f->is_closed)
		return FLOW_CLOSED;
	for (int turn = 0; step == STEP_AGAIN && turn < TURNS; turn++)
		step = copies ? copy_step(c, f, reason) : splice_step(c, f, reason);
	switch (step) {
	case STEP_AGAIN: /* let other connections have a turn. Waiting to read could hang: TLS may hold bytes that epoll
			    does not see */
		flow_wait_for_side(f, f->to, EPOLLOUT);
		return FLOW_WAITS;
	case STEP_WAIT:
		return FLOW_WAITS;
	case STEP_CLOSED:
		return FLOW_CLOSED;
	case STEP_BAD:
		return FLOW_BAD;
	case STEP_STOPPED:
		return FLOW_STOPPED;
	case STEP_BROKEN:
		break;
	}
	return FLOW_BROKEN;
}

static uint32_t events_wanted(const struct flow *f, const struct side *side)
{
	return f->wait == side && !f->is_closed ? f->events : 0;
}

void flow_watch_events(struct connection *c, const struct flow *one, const struct flow *other)
{
	uint32_t left = c->up.is_closed && !c->is_half_closed ? EPOLLRDHUP : 0;

	connection_watch_events(c, events_wanted(one, &c->client) | events_wanted(other, &c->client) | left,
				events_wanted(one, &c->server) | events_wanted(other, &c->server));
}
