/*
 * http_rules.h - the headers of a message, compared with its body.
 *
 * Pure. A proxy routes by the headers, this server works by the body. They must match, or a client could send
 * the proxy one thing and the server another.
 */
#pragma once
#include "http_head.h"
#include "revision.h"
#include "rpc.h"

/*
 * Which era does the message belong to? Modern: its _meta must still be checked. Legacy: *legacy is the revision that
 * its header says, or 2025-03-26, which does not have the header. Refused: neither, with *e.
 */
enum http_era { HTTP_ERA_REFUSED = -1, HTTP_ERA_LEGACY, HTTP_ERA_MODERN };
enum http_era rules_decide_era(const struct http_head *h, const struct rpc_message *m, enum revision *legacy,
			struct rpc_error *e);

/* Do Mcp-Method and Mcp-Name of a modern message repeat its body? */
must_use int rules_check_headers(const struct http_head *h, const struct rpc_message *m, struct rpc_error *e);

/* Mcp-Param-NAME must repeat an argument that is a text. Arguments of other types are refused by the tool, not here. */
must_use int rules_check_param_header(const struct http_head *h, const char *name, const json_t *argument,
			       struct rpc_error *e);

/* Decodes "=?base64?...?="; any other value is literal. NULL: invalid. malloc'ed. */
char *rules_decode_header_value(const char *value);
