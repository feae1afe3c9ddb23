#include "batch.h"

#include <stdlib.h>
#include <string.h>

static void release(struct batch *b)
{
	if (--b->pending)
		return;
	b->done(b->owner, json_array_size(b->answers) ? b->answers : NULL);
	json_decref(b->answers);
	free(b);
}

void batch_answer(struct batch *b, const json_t *message)
{
	json_array_append(b->answers, (json_t *)message);
	release(b);
}

void batch_gone(struct batch *b)
{
	release(b);
}

static void refuse(struct batch *b, const struct rpc_message *message, struct rpc_error *e)
{
	if (message->kind == RPC_REQUEST)
		json_array_append_new(b->answers, rpc_failure(message->id, e));
}

static void take(struct batch *b, struct mcp *m, struct channel *ch, const json_t *element)
{
	scoped_rpc       message;
	struct rpc_error e;

	if (rpc_parse_json(&message, json_incref((json_t *)element), &e) < 0) {
		refuse(b, &message, &e);
	} else if (message.kind == RPC_REQUEST && strcmp(message.method, "initialize") == 0) {
		rpc_error_set(&e, RPC_INVALID_REQUEST, "initialize cannot be in a batch: what comes after it depends on its answer");
		refuse(b, &message, &e);
	} else {
		b->pending += message.kind == RPC_REQUEST;
		dispatch(m, ch, b, &message);
	}
}

int batch_dispatch(struct mcp *m, struct channel *ch, json_t *array, void (*done)(void *owner, const json_t *answers), void *owner,
		   struct rpc_error *e)
{
	size_t        n = json_array_size(array);
	struct batch *b = n && n <= RPC_BATCH ? calloc(1, sizeof *b) : NULL;

	if (!b) {
		json_decref(array);
		if (n && n <= RPC_BATCH)
			return rpc_error_set(e, RPC_INTERNAL, "out of memory");
		return rpc_error_set(e, RPC_INVALID_REQUEST, "a batch of %zu messages: expected 1 to %d", n, RPC_BATCH);
	}
	*b = (struct batch){ .answers = json_array(), .pending = 1, .done = done, .owner = owner };
	for (size_t i = 0; i < n; i++)
		take(b, m, ch, json_array_get(array, i));
	json_decref(array);
	release(b);
	return 0;
}
