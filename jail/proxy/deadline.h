/*
 * deadline.h - deadlines for thousands of connections
 *
 * All deadlines of one kind have the same length, so a list to which they are appended is
 * sorted: setting and clearing take constant time. The lists are checked twice a second.
 */
#pragma once
#include "loop.h"

enum deadline_kind {
	DEADLINE_REQUEST, /* for the program to send its request */
	/* to resolve a name; then for the last address, an upstream proxy's answer, the server's TLS handshake */
	DEADLINE_DIAL,
	DEADLINE_TRY,   /* to connect to an address that is not the last one */
	DEADLINE_IDLE,  /* without a byte in either direction */
	DEADLINE_KEPT,  /* for another request, after a reply */
	DEADLINE_HALF,  /* the same as IDLE, after the program has shut down its sending side */
	DEADLINE_DRAIN, /* for the program to read a refusal, or the end of a reply */
	DEADLINE_HELD,  /* the last bytes of a reply that may have a secret, until they are passed on */
	DEADLINE_KINDS,
};

struct deadline {
	TAILQ_ENTRY(deadline) link;
	enum deadline_kind kind;
	bool               set;
	int64_t            at_ms;
	void (*due)(void *owner);
	void *owner;
};

struct deadlines {
	struct loop      *loop;
	struct loop_timer tick;
	TAILQ_HEAD(deadline_list, deadline) list[DEADLINE_KINDS];
};

void deadlines_init(struct deadlines *all, struct loop *loop);
/* A deadline that is set already is moved. Before the first call, zero the struct but for due and owner. */
void deadline_set(struct deadlines *all, struct deadline *d, enum deadline_kind kind);
void deadline_clear(struct deadlines *all, struct deadline *d);
