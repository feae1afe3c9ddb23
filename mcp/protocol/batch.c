#include "batch.h"

#include <stdlib.h>
#include <string.h>

static void batch_release_call(struct batch *b)
{
	if (--b->pending)
		return;
	b->done(b->owner, json_array_size(b->answers) ? b->answers : NULL);
	json_decref(b->answers);
	free(b);
}

void batch_add_answer(struct batch *b, const json_t *message)
{
	json_array_append(b->answers, (json_t *)message);
	batch_release_call(b);
}

void batch_drop_call(struct batch *b)
{
	batch_release_call(b);
}

int batch_dispatch(struct mcp *m, struct channel *ch, json_t *array, void (*done)(void *owner, const json_t *answers),
		   void *owner, struct rpc_error *e)
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
	for (size_t i = 0; i < n; i++) {
		scoped_rpc message;
		bool       is_valid = rpc_parse_json(&message, json_incref(json_array_get(array, i)), e) == 0;

		if (is_valid && message.kind == RPC_REQUEST && strcmp(message.method, "initialize") == 0) {
			rpc_error_set(e, RPC_INVALID_REQUEST,
				      "initialize cannot be in a batch: what comes after it depends on its answer");
			is_valid = false;
		}
		b->pending += is_valid && message.kind == RPC_REQUEST;
		if (is_valid)
			dispatch_message(m, ch, b, &message);
		else if (message.kind == RPC_REQUEST)
			json_array_append_new(b->answers, rpc_failure(message.id, e));
	}
	json_decref(array);
	batch_release_call(b);
	return 0;
}
