/*
 * batch.h - several messages in one array, answered by one array: only revision 2025-03-26 has that.
 *
 * A channel that supports batches passes the batch to dispatch_message() as channel_data of each of its calls, and
 * reports how they end with batch_add_answer() and batch_drop_call().
 */
#pragma once
#include "method.h"

struct batch {
	json_t *answers;
	size_t  pending;
	/*
	 * All calls have ended. answers: an array, or NULL if there is nothing to answer; borrowed. The batch is
	 * freed afterwards.
	 */
	void  (*done)(void *owner, const json_t *answers);
	void   *owner;
};

/* May this be a batch? */
static inline bool batch_is_accepted(const struct channel *ch, const json_t *loaded)
{
	return json_is_array(loaded) && ch->legacy == REVISION_2025_03_26;
}

/*
 * Dispatches all messages; takes array over. done() is called before this returns, or later. -1: the array is empty
 * or too long, or memory is short; *e is its answer.
 */
must_use int batch_dispatch(struct mcp *m, struct channel *ch, json_t *array,
			    void (*done)(void *owner, const json_t *answers), void *owner, struct rpc_error *e);
/* For the operations answer and gone of a channel, if channel_data is a batch. */
void batch_add_answer(struct batch *b, const json_t *message);
void batch_drop_call(struct batch *b);
