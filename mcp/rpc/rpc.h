/*
 * rpc.h - JSON-RPC 2.0 messages: bytes become a message, or an error that can be sent back.
 *
 * Pure. All pointers of a message are borrowed from `source`, which rpc_message_done() frees.
 */
#pragma once
#include "err.h"

#include <jansson.h>

/* What a client may send at once, and how deep it may nest. */
#define RPC_MAX   (4 * MIB)
#define RPC_DEPTH 64
#define RPC_WEIGHT 200000 /* of wire_memory_weight(), which bounds the memory of a parsed message: requests carry text, not structure */
/* The longest message that is sent: some clients close the connection at 10 MiB. */
#define RPC_OUT_MAX (8 * MIB)
#define RPC_BATCH 256 /* messages in one array */

/* Codes of the specification. */
enum {
	RPC_PARSE_ERROR         = -32700,
	RPC_INVALID_REQUEST     = -32600,
	RPC_METHOD_NOT_FOUND    = -32601,
	RPC_INVALID_PARAMS      = -32602,
	RPC_INTERNAL            = -32603,
	RPC_HEADER_MISMATCH     = -32020,
	RPC_UNSUPPORTED_VERSION = -32022,
	/* Of brig, from brig-mcp-remote to brig-mcp: there is no answer, or it is too large. */
	RPC_NO_ANSWER           = -31001,
	RPC_TOO_LARGE           = -31002,
};

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };

struct rpc_message {
	enum rpc_kind kind;
	const char   *method; /* NULL of a response */
	const json_t *id;     /* a string or an integer; NULL of a notification */
	const json_t *params; /* an object, or NULL: there was none */
	const json_t *result, *error; /* of a response */
	json_t       *source;
};

/* An error as it is sent: the code, a sentence, data or NULL (owned). */
struct rpc_error {
	int     code;
	char    text[400];
	json_t *data;
};
int rpc_error_set(struct rpc_error *e, int code, const char *fmt, ...) printf_like(3, 4); /* -1 */

/*
 * Parses one message. On failure ret->id is the id if it could be read, else NULL; ret->kind is RPC_REQUEST unless the message
 * is clearly a notification or a response, which is never answered; rpc_message_done() must be called all the same. Arrays
 * (batches) are refused: a caller that takes batches uses rpc_load_json(), then rpc_parse_json() on each element.
 */
must_use json_t *rpc_load_json(const void *bytes, size_t len, struct rpc_error *e); /* any JSON within the bounds; NULL with *e */
must_use int rpc_parse(struct rpc_message *ret, const void *bytes, size_t len, struct rpc_error *e);
must_use int rpc_parse_json(struct rpc_message *ret, json_t *source, struct rpc_error *e); /* takes source over */
void         rpc_message_done(struct rpc_message *m);
#define scoped_rpc scoped(rpc_message_done) struct rpc_message

/* Whole messages, new references; result and params are taken over. id NULL: the message has none, as an error that answers no known request. */
json_t *rpc_result(const json_t *id, json_t *result);
json_t *rpc_failure(const json_t *id, struct rpc_error *e); /* takes e->data over */
json_t *rpc_notification(const char *method, json_t *params);
json_t *rpc_request(const json_t *id, const char *method, json_t *params);

/* One line without its newline, malloc'ed; NULL when memory is short. */
char *rpc_dump(const json_t *message, size_t *len);
/* The same for a message to a client: an answer longer than RPC_OUT_MAX becomes an error. */
char *rpc_dump_to_send(const json_t *message, size_t *len);
