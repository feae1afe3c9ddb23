/*
 * http_rules.h - the headers of a message held against its body.
 *
 * Pure. A proxy routes by the headers and we work by the body: what the two
 * say must be the same, or one of them has been lied to.
 */
#pragma once
#include "http_head.h"
#include "revision.h"
#include "rpc.h"

/*
 * Which era does the message belong to? true: a modern one, whose _meta is
 * still to be checked. Legacy: *legacy is the revision that its header says,
 * or that is meant by none. -1: neither, with its error.
 */
enum http_era { HTTP_ERA_REFUSED = -1, HTTP_ERA_LEGACY, HTTP_ERA_MODERN };
enum http_era rules_era(const struct http_head *h, const struct rpc_message *m, enum revision *legacy, struct rpc_error *e);

/* Of a modern message. */
must_use int rules_check(const struct http_head *h, const struct rpc_message *m, struct rpc_error *e);

/* Mcp-Param-NAME repeats an argument that is a text: what is in one is in the other. Other values are for the tool to refuse. */
must_use int rules_check_param(const struct http_head *h, const char *name, const json_t *argument, struct rpc_error *e);

/* "=?base64?...?=" becomes what it stands for, anything else is literal. NULL: damaged. malloc'ed. */
char *rules_decode(const char *value);
