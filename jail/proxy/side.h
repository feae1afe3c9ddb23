/*
 * side.h - one end of a connection: a socket, maybe with TLS, and what is waited for at it
 *
 * A socket for which nothing is waited is not in the loop: epoll tells of an
 * error or a hang-up always, also again and again.
 */
#pragma once
#include "loop.h"
#include "tls_end.h"

struct side {
	struct loop_source source; /* fd -1: there is none (yet) */
	uint32_t           wanted; /* EPOLLIN, EPOLLOUT; 0: not in the loop */
	struct tls_end    *tls;    /* owned; NULL: plain */
	bool               is_cut; /* what goes to it is not whole: it must not end as if it were */
};

/* Owns fd from then on. */
void side_open(struct side *s, int fd, void (*ready)(void *owner), void *owner);
void side_want(struct loop *l, struct side *s, uint32_t events);
/* is_reset: the other end learns that it was cut off (RST), not that all was said. */
void side_close(struct loop *l, struct side *s, bool is_reset);

/* The other end said its last, or is gone. */
bool side_is_left(const struct side *s);

enum tls_outcome side_read(struct side *s, void *buf, size_t size, size_t *moved);
enum tls_outcome side_write(struct side *s, const void *bytes, size_t len, size_t *moved);
/* Nothing more comes from us; the other direction stays. is_cut: without TLS's close_notify, as it came to us. */
enum tls_outcome side_finish(struct side *s);
