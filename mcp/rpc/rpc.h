/*
 * rpc.h - JSON-RPC 2.0 messages: bytes become one, or one error that can be sent back.
 *
 * Pure. Everything is borrowed from `source`, which rpc_message_done() frees.
 */
#pragma once
#include "err.h"

#include <jansson.h>

/* What a client may send at once, and how deep it may nest. */
#define RPC_MAX   (4 * MIB)
#define RPC_DEPTH 64
#define RPC_WEIGHT 200000 /* wire_weight(): what is asked for is text, not structure */
/* What is sent at once: there are clients that hang up at 10 MiB. */
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
	/* Ours, from brig-mcp-remote to brig-mcp: there is no answer, or it is too large. */
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
 * One message. On failure ret->id is what could be read of it, or NULL,
 * ret->kind is RPC_REQUEST unless it is surely something that is never
 * answered, and ret->source must be freed all the same. Arrays (batches) are
 * refused here; who takes them loads first, and parses each element.
 */
must_use json_t *rpc_load(const void *bytes, size_t len, struct rpc_error *e); /* any JSON within the bounds; NULL with *e */
must_use int rpc_parse(struct rpc_message *ret, const void *bytes, size_t len, struct rpc_error *e);
must_use int rpc_parse_json(struct rpc_message *ret, json_t *source, struct rpc_error *e); /* takes source over */
void         rpc_message_done(struct rpc_message *m);
#define scoped_rpc scoped(rpc_message_done) struct rpc_message

/* The whole message; takes result over. id NULL: left out, as of an error that belongs to nothing. */
json_t *rpc_result(const json_t *id, json_t *result);
json_t *rpc_failure(const json_t *id, struct rpc_error *e); /* takes e->data over */
json_t *rpc_notification(const char *method, json_t *params);
json_t *rpc_request(const json_t *id, const char *method, json_t *params);

/* One line without its newline, malloc'ed; NULL when memory is short. */
char *rpc_dump(const json_t *message, size_t *len);
/* The same of something that is sent: an answer longer than RPC_OUT_MAX becomes an error that says so. */
char *rpc_dump_to_send(const json_t *message, size_t *len);
