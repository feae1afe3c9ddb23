/*
 * launcher.h - the one connection to brigd, and who waits for what on it.
 *
 * Made at the first question, made anew after it broke. Many questions are open
 * at once, told apart by their tags. Nothing here waits: what the socket does not
 * take at once is sent later, and a private brigd that is going is reaped
 * when it has gone.
 */
#pragma once
#include "datagram.h"
#include "mcp.h"

/*
 * One question. Its owner fills the first four; message and descriptors stay
 * the owner's, and must live until it is answered. A question stays open until
 * launcher_forget(), for a run has several answers. One that has none yet when
 * the connection breaks is asked again over a new one, once: a brigd that was
 * about to go when it was asked is nobody's fault.
 */
struct question {
	/* The datagram is the launcher's; descriptors may be taken (fd_take()). May ask, and may forget this one. */
	void       (*answered)(void *owner, struct datagram *d);
	/* The connection broke; forgotten already. */
	void       (*lost)(void *owner, const struct err *why);
	void        *owner;
	const json_t *message; /* without a tag */

	const int              *fds;
	size_t                  fds_len;
	uint64_t                tag; /* the launcher's; 0: not asked */
	bool                    sent, heard, repeated;
	bool                    waits; /* for its first answer */
	TAILQ_ENTRY(question)   link;
};

struct launcher *launcher_create(struct mcp *m); /* asks nothing yet; NULL: no memory */
/* Ends the connection, and with it all of its runs. Waits until a private brigd has gone. Every question must be forgotten. */
void launcher_destroy(struct launcher *l);

/* -1: no brigd can be reached; *e says why, and what to do. */
must_use int launcher_ask(struct launcher *l, struct question *q, struct err *e);
void         launcher_forget(struct launcher *l, struct question *q); /* may be called on one that was not asked */

/* A request whose answer nobody waits for: cancel. Takes it over. Lost when the connection is: then everything has ended. */
void launcher_tell(struct launcher *l, json_t *message);

/* The brigd of this connection: its socket's path, or the program's if it is private. NULL: there is none. */
const char *launcher_server(const struct launcher *l, bool *is_private);

/* What was learnt over this connection, by names of those who keep it there (facts.h); emptied when it breaks. Borrowed. */
json_t *launcher_learnt(struct launcher *l);
