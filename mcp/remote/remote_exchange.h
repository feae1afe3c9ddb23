/*
 * remote_exchange.h - one HTTP request to the server, and its response.
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
	json_t               *id;       /* of a JSON-RPC request; NULL: the message has no answer */
	char                  method[64];
	bool                  modern, is_listen, is_initialize;
	bool                  is_stream, is_held, awaits; /* HTTP+SSE: its stream; POST waits for the endpoint; POST taken, answer comes on the stream */
	long                  refused_with;       /* HTTP status of the first POST of a held one, before HTTP+SSE was tried; 0: there was none */
	bool                  knows_type, is_events, answered, too_large, is_refused; /* is_refused: HTTP error status, so any body */
	char                 *data;     /* the body, where it is one JSON object */
	size_t                len, room;
	struct events         events;
	char                  why[CURL_ERROR_SIZE];
};

/* Sends a message; message is borrowed, line is taken over. NULL: memory is short. */
struct exchange *exchange_post(struct remote *r, const struct rpc_message *message, char *line);
/*
 * Opens the stream (GET) for messages that a legacy server sends without being asked. is_sse: the event stream of an
 * HTTP+SSE server.
 */
struct exchange *exchange_open_stream(struct remote *r, bool is_sse);
/* The endpoint of HTTP+SSE is known: sends a held POST there. */
void exchange_send_held(struct exchange *x);
/* Answers an exchange with an error, as there is no endpoint or the stream has ended, and frees it. */
void exchange_fail(struct exchange *x, const char *why);
/* libcurl has finished the transfer. The exchange is freed, unless it is held or its answer comes on the stream of HTTP+SSE. */
void exchange_on_transfer_end(struct exchange *x, CURLcode code);
/* Frees the exchange and aborts its transfer; nothing more of its answer is written. */
void exchange_free(struct exchange *x);
