/*
 * datagram.h - sends requests to brigd and receives its answers: a JSON object each, with descriptors.
 *
 * The client's side of the protocol (client_protocol.h), over a SOCK_SEQPACKET
 * socket. A datagram arrives whole or not at all. A received one has every key of
 * its kind and no other; its descriptors are close-on-exec, and struct datagram
 * owns them until fd_take().
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
void datagram_done(struct datagram *d); /* closes descriptors that were not taken */
#define scoped_datagram scoped(datagram_done) struct datagram

must_use int datagram_send(int sock, const json_t *request, const int *fds, size_t n, struct err *e);

enum datagram_answer {
	DATAGRAM_RECEIVED,
	DATAGRAM_END,    /* the other side is gone */
	DATAGRAM_BROKEN, /* *e: what was wrong; the connection cannot be used any more */
};

/* Parses a received datagram. Takes the descriptors over, also on failure. fds: at most DATAGRAM_FDS_MAX. */
must_use int datagram_parse(struct datagram *ret, const char *text, size_t len, const int *fd, size_t fds, struct err *e);

/* Waits for a datagram. *ret is DATAGRAM_NONE unless the result is DATAGRAM_RECEIVED. */
must_use enum datagram_answer datagram_receive(int sock, struct datagram *ret, struct err *e);

/*
 * Sends a request and returns its reply: a new reference, or NULL with *e. ERR_DENIED: brigd refused it; the text is
 * its message. *fd: the descriptor of the reply, which the caller owns; -1: there was none; untouched on failure.
 * fd NULL: it is closed.
 */
must_use json_t *datagram_exchange(int sock, const json_t *request, int *fd, struct err *e);
/* The socket for files of a session (file_stream.h), or -1. */
must_use int datagram_open_files(int sock, const char *session, struct err *e);
