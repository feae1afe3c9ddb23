/*
 * http_head.h - the header fields of one request that anything depends on.
 *
 * Pure. Values without the blanks around them. A field that decides something
 * and comes twice is a fault: two readers would believe two different ones.
 */
#pragma once
#include "defs.h"

enum { HEAD_PARAMS_MAX = 32 };

struct head_param {
	char *name, *value; /* of Mcp-Param-NAME, as it was written */
};

struct http_head {
	char *host, *origin, *authorization, *content_type, *content_length, *transfer_encoding, *expect;
	char *protocol_version, *mcp_method, *mcp_name, *session_id;
	char *accept;                         /* several are joined by commas */
	struct head_param param[HEAD_PARAMS_MAX];
	size_t            n_params;
	char              fault[128];         /* a sentence; empty: none */
};

/* Sets the fault where two readers could read it differently: a name that is none, a control character. */
void head_check(struct http_head *h, const char *name, size_t name_len, const char *value, size_t value_len);

void head_take(struct http_head *h, const char *name, const char *value); /* value NULL: empty */
void head_done(struct http_head *h);

/* Case does not matter; NULL: it was not sent. */
const char *head_param(const struct http_head *h, const char *name);
/* May the answer be an event stream? Who sends no Accept takes everything. */
bool head_takes_events(const struct http_head *h);
