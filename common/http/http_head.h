/*
 * http_head.h - the header fields of a request that servers use: those of brig-mcp and of brig-api.
 *
 * Pure. Values are without the blanks around them. A field that appears twice is a fault: a proxy and this server might
 * each use another one.
 */
#pragma once
#include "defs.h"

enum { HEAD_PARAMS_MAX = 32 };

struct head_find_param {
	char *name, *value; /* of a header Mcp-Param-NAME, as it was written */
};

struct http_head {
	char *host, *origin, *authorization, *content_type, *content_length, *transfer_encoding, *expect;
	char *protocol_version, *mcp_method, *mcp_name, *session_id;
	char *x_session_id, *x_auth_token;    /* of brig-api */
	char *accept;                         /* several are joined by commas */
	struct head_find_param param[HEAD_PARAMS_MAX];
	size_t            n_params;
	char              fault[128];         /* a sentence; empty: none */
};

/*
 * Sets the fault if the name is not a token, or the value has a control character: another server could read such a
 * field differently.
 */
void head_check_header(struct http_head *h, const char *name, size_t name_len, const char *value, size_t value_len);

void head_store_header(struct http_head *h, const char *name, const char *value); /* value NULL: empty */
void head_done(struct http_head *h);

/* That a client can ask a person is part of the id of its session. */
#define HEAD_ELICITS_MARK "-e"
/*
 * Is the id of the session of the form of this server's? They are random, so no other client knows them. Ids of another
 * form do not make an owner.
 */
bool        head_has_own_session_id(const struct http_head *h);

/* Case does not matter; NULL: it was not sent. */
const char *head_find_param(const struct http_head *h, const char *name);
/* Is the body declared as JSON? Or as plain text, as some clients declare JSON? */
bool head_has_json_body(const struct http_head *h);
bool head_has_text_body(const struct http_head *h);
/*
 * Is there at most one length, and is it valid? With two, a proxy in front of the server might see another end of the
 * request than the server does: request smuggling.
 */
bool head_has_one_body_length(const struct http_head *h);
/* May the answer be an event stream? Without a header Accept it may. */
bool head_accepts_event_stream(const struct http_head *h);
