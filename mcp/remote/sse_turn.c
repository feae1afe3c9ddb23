#include "sse_turn.h"

#include "remote_exchange.h"

#include <stdio.h>

enum { ENDPOINT_MS = 10 * 1000 };

/* Answers every request with an error and ends the process; brig-mcp starts it again like any server that has ended. */
static void give_up(struct remote *r, const char *why)
{
	struct exchange *x, *next;
	char             text[sizeof r->sse.why + 20];

	snprintf(text, sizeof text, "HTTP+SSE: %s", why);
	fprintf(stderr, "%s\n", text);
	for (x = TAILQ_FIRST(&r->exchanges); x; x = next) {
		next = TAILQ_NEXT(x, link);
		if (x->is_held || x->id)
			exchange_refuse(x, text);
	}
	r->ends   = true;
	r->status = 1;
}

static void open_stream(struct remote *r, int64_t now_ms)
{
	r->sse.state    = SSE_OPENS;
	r->sse.until_ms = now_ms + ENDPOINT_MS;
	if (!exchange_stream(r))
		give_up(r, "out of memory");
}

static void release_all(struct remote *r)
{
	struct exchange *x, *next;

	for (x = TAILQ_FIRST(&r->exchanges); x; x = next) {
		next = TAILQ_NEXT(x, link);
		if (x->is_held)
			exchange_release(x);
	}
}

void sse_turn(struct remote *r, int64_t now_ms)
{
	if (r->sse.is_over) {
		give_up(r, r->sse.why);
		return;
	}
	switch (r->sse.state) {
	case SSE_NO:
		return;
	case SSE_WANTED:
		open_stream(r, now_ms);
		return;
	case SSE_OPENS:
		if (now_ms >= r->sse.until_ms)
			give_up(r, "no endpoint in 10 s");
		return;
	case SSE_OPEN:
		release_all(r);
		return;
	}
}
