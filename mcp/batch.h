/*
 * batch.h - several messages in one array, which are answered by one array: revision 2025-03-26 and no other.
 *
 * A channel that takes them gives the batch to dispatch() as its data of each
 * call, and tells it what becomes of them.
 */
#pragma once
#include "method.h"

struct batch {
	json_t *answers;
	size_t  pending;
	/* All are answered: answers is an array, or NULL when there is nothing to say. Borrowed; the batch is gone afterwards. */
	void  (*done)(void *owner, const json_t *answers);
	void   *owner;
};

/* May this be a batch? */
static inline bool batch_is_taken(const struct channel *ch, const json_t *loaded)
{
	return json_is_array(loaded) && ch->legacy == REVISION_2025_03_26;
}

/* Works on all of it; takes array over. done() is called before this returns, or later. -1: nothing of it is a batch, *e is its answer. */
must_use int batch_dispatch(struct mcp *m, struct channel *ch, json_t *array, void (*done)(void *owner, const json_t *answers), void *owner,
			    struct rpc_error *e);
/* Of the channel's operations answer and gone, when channel_data is a batch. */
void batch_answer(struct batch *b, const json_t *message);
void batch_gone(struct batch *b);
