/*
 * side.h - one end of a connection: a socket, maybe with TLS, and the events that it waits for
 *
 * A socket that waits for no event is not in the loop: epoll reports an error or
 * a hang-up also without wanted events, again and again.
 */
#pragma once
#include "loop.h"
#include "tls_end.h"

struct side {
	struct loop_source source; /* fd -1: there is none (yet) */
	uint32_t           wanted; /* EPOLLIN, EPOLLOUT; 0: not in the loop */
	struct tls_end    *tls;    /* owned; NULL: plain */
	bool               is_cut; /* what goes to it is incomplete: its end must not look complete */
};

/* Takes ownership of fd; -1: there is none yet. */
void side_open(struct side *s, int fd, void (*ready)(void *owner), void *owner);
void side_watch_events(struct loop *l, struct side *s, uint32_t events);
/* is_reset: with RST, so that the peer knows that it was cut off. */
void side_close(struct loop *l, struct side *s, bool is_reset);

/* The peer has shut down its sending side, or is gone. */
bool side_is_half_closed(const struct side *s);

enum tls_outcome side_read(struct side *s, void *buf, size_t size, size_t *moved);
enum tls_outcome side_write(struct side *s, const void *bytes, size_t len, size_t *moved);
/* Shuts down our sending side; the other direction stays open. is_cut: without close_notify, as the other side sent
 * none. */
enum tls_outcome side_finish(struct side *s);
