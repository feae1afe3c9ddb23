/*
 * exchange.h - one request of HTTP: its headers, and what becomes of its answer.
 */
#pragma once
#include "events.h"
#include "remote.h"

struct exchange {
	TAILQ_ENTRY(exchange) link;
	struct remote        *remote;
	CURL                 *easy;
	struct curl_slist    *headers;
	char                 *body;     /* of a POST */
	json_t               *id;       /* of a request; NULL: it has no answer */
	char                  method[64];
	bool                  modern, is_listen, is_initialize;
	bool                  is_stream, is_held, awaits; /* HTTP+SSE: its one stream; a POST that waits for the endpoint; one that was taken, and its answer comes on the stream */
	long                  refused_with;       /* of a held one that was posted before: the status; else 0 */
	bool                  knows_type, is_events, answered, too_large, is_refused; /* is_refused: its status says so, and its body may be anything */
	char                 *data;     /* of one object */
	size_t                len, room;
	struct events         events;
	char                  why[CURL_ERROR_SIZE];
};

/* A message on its way; message is borrowed, line is taken over. NULL: memory is short. */
struct exchange *exchange_post(struct remote *r, const struct rpc_message *message, char *line);
/* A stream of what a legacy server says unasked. */
struct exchange *exchange_listen(struct remote *r);
/* The stream of a server of HTTP+SSE. */
struct exchange *exchange_stream(struct remote *r);
/* The endpoint of HTTP+SSE is known, and a held one goes there. */
void exchange_release(struct exchange *x);
/* There will be no endpoint: a held one is answered, and freed. */
void exchange_refuse(struct exchange *x, const char *why);
/* libcurl has done with it. It is freed, unless its answer comes by other ways. */
void exchange_over(struct exchange *x, CURLcode code);
/* Its answer is not wanted: nothing more of it is written. */
void exchange_drop(struct exchange *x);
