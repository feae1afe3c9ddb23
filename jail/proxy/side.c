#define _GNU_SOURCE
#include "side.h"

#include "fd.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

void side_open(struct side *s, int fd, void (*ready)(void *owner), void *owner)
{
	*s = (struct side){ .source = { fd, ready, owner } };
}

void side_watch_events(struct loop *l, struct side *s, uint32_t events)
{
	struct err e;

	if (s->source.fd < 0 || s->wanted == events)
		return;
	if (events == 0)
		loop_remove(l, &s->source);
	else if (s->wanted)
		loop_set_events(l, &s->source, events);
	else if (loop_add_events(l, &s->source, events, &e) < 0)
		events = 0; /* no memory: the connection's deadline ends it */
	s->wanted = events;
}

void side_close(struct loop *l, struct side *s, bool is_reset)
{
	static const struct linger none = { .l_onoff = 1 };

	side_watch_events(l, s, 0);
	tls_end_destroy(s->tls);
	s->tls = NULL;
	if (is_reset && s->source.fd >= 0)
		(void)setsockopt(s->source.fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
	fd_closep(&s->source.fd);
}

bool side_is_half_closed(const struct side *s)
{
	struct pollfd p = { .fd = s->source.fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) == 1;
}

static enum tls_outcome socket_outcome(ssize_t n, enum tls_outcome otherwise, size_t *moved)
{
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? otherwise : TLS_FAILED;
	*moved = (size_t)n;
	return n == 0 ? TLS_END : TLS_MOVED;
}

enum tls_outcome side_read(struct side *s, void *buf, size_t size, size_t *moved)
{
	return s->tls ? tls_end_read(s->tls, buf, size, moved)
		      : socket_outcome(recv(s->source.fd, buf, size, 0), TLS_WANT_READ, moved);
}

enum tls_outcome side_write(struct side *s, const void *bytes, size_t len, size_t *moved)
{
	return s->tls ? tls_end_write(s->tls, bytes, len, moved)
		      : socket_outcome(send(s->source.fd, bytes, len, MSG_NOSIGNAL), TLS_WANT_WRITE, moved);
}

enum tls_outcome side_finish(struct side *s)
{
	enum tls_outcome result = s->tls && !s->is_cut ? tls_end_finish(s->tls) : TLS_MOVED;

	if (result == TLS_WANT_READ || result == TLS_WANT_WRITE)
		return result;
	(void)shutdown(s->source.fd, SHUT_WR);
	return TLS_MOVED;
}
