/*
 * brigd_link.h - the one connection to brigd, and the questions that are open on it.
 *
 * It is made for the first question, and made again after it broke. Many questions are open at once; tags tell their
 * answers apart. Only connecting and brigd_link_destroy() wait: what the socket does not take at once is sent later,
 * and a private brigd whose connection has ended is reaped when it has exited.
 */
#pragma once
#include "brigd_connection.h"
#include "datagram.h"
#include "loop.h"

/*
 * One question. Its owner fills the first four members; message and descriptors stay the owner's, and must live until
 * it is answered. It stays open until brigd_link_detach(), for a run has several answers. If the connection breaks
 * before the first answer, the question is asked again over a new connection, once: brigd may just have been exiting
 * when it was asked.
 */
enum question_state {
	QUESTION_QUEUED, /* not sent over this connection yet */
	QUESTION_SENT,   /* it has no answer yet */
	QUESTION_ANSWERED,
};

struct question {
	/* d: brigd_link's; its descriptors may be taken (fd_take()). May ask questions, and may forget this one. */
	void       (*answered)(void *owner, struct datagram *d);
	/* The connection broke; the question is not open any more. */
	void       (*lost)(void *owner, const struct err *why);
	void        *owner;
	const json_t *message; /* without a tag */

	const int              *fds;
	size_t                  fds_len;
	uint64_t                tag;      /* set by brigd_link; 0: not asked */
	enum question_state     state;
	bool                    repeated; /* it was asked again over a new connection, or must not be */
	TAILQ_ENTRY(question)   link;
};

struct brigd_link *brigd_link_create(struct loop *loop, enum brigd_want want); /* asks nothing yet; NULL: no memory */
/*
 * Closes the connection, which ends all runs. Waits until private brigds have exited. Every question must be
 * forgotten before.
 */
void brigd_link_destroy(struct brigd_link *l);

/* -1: brigd cannot be reached; *e: why, and what to do. */
must_use int brigd_link_ask(struct brigd_link *l, struct question *q, struct err *e);
void         brigd_link_detach(struct brigd_link *l, struct question *q); /* may be called on one that was not asked */

/*
 * Sends a request whose answer is ignored, as cancel. Takes message over. It is lost if the connection breaks, which
 * ends all runs anyway.
 */
void brigd_link_send(struct brigd_link *l, json_t *message);

struct loop *brigd_link_loop(const struct brigd_link *l);

/*
 * The brigd of this connection: the path of its socket, or of its program if it is private. NULL: there is no
 * connection.
 */
const char *brigd_link_server(const struct brigd_link *l, bool *is_private);

/* Answers that are kept for this connection, by keys of profile_info.h; cleared when it breaks. Borrowed. */
json_t *brigd_link_cache(struct brigd_link *l);
