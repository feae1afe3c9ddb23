/*
 * datagram.h - a request goes, an answer comes: one JSON object each, and the descriptors beside it.
 *
 * The client's side of the protocol (client_protocol.h), over a SOCK_SEQPACKET
 * socket. Whole or not at all; what comes has every key of its kind and no
 * other, and its descriptors are close-on-exec and have one owner.
 */
#pragma once
#include "client_protocol.h"

enum { DATAGRAM_FDS_MAX = 5 }; /* of an answer */

struct datagram {
	struct protocol_answer answer;
	int                    fd[DATAGRAM_FDS_MAX];
	size_t                 fds;
};
#define DATAGRAM_NONE ((struct datagram){ .fd = { -1, -1, -1, -1, -1 } })
void datagram_done(struct datagram *d); /* closes what was not taken */
#define scoped_datagram scoped(datagram_done) struct datagram

must_use int datagram_send(int sock, const json_t *request, const int *fds, size_t n, struct err *e);

enum datagram_answer {
	DATAGRAM_CAME,
	DATAGRAM_END,    /* the other side is gone */
	DATAGRAM_BROKEN, /* *e says what was wrong; nothing more can be believed */
};

/* Of one that was received: the descriptors are its own in any case. */
must_use int datagram_parse(struct datagram *ret, const char *text, size_t len, const int *fd, size_t fds, struct err *e);

/* Waits for one. *ret is empty unless one came. */
must_use enum datagram_answer datagram_receive(int sock, struct datagram *ret, struct err *e);

/* A request, and its reply: a new reference, or NULL. ERR_DENIED: brigd refused it; the text is its message. */
must_use json_t *datagram_exchange(int sock, const json_t *request, struct err *e);
/* The same; *fd is the descriptor that came with the reply, or -1: there was none. Closed when fd is NULL. */
must_use json_t *datagram_exchange_fd(int sock, const json_t *request, int *fd, struct err *e);
