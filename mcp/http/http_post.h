/*
 * http_post.h - one POST to /mcp: its body becomes calls, their answers one response.
 *
 * The connection is suspended while calls are under way. The response is JSON, unless a message has to be sent before
 * the answer: then it is a stream of events. A post lives until both its connection and its last call have ended. When
 * a modern client closes the connection, its calls are cancelled.
 */
#pragma once
#include "call.h"
#include "http_head.h"
#include "http_server.h"

struct http_post {
	struct channel         channel;    /* first: a pointer to it is one to the post */
	TAILQ_ENTRY(http_post) link;
	struct http_server    *server;
	struct MHD_Connection *connection; /* NULL: gone */
	struct http_connection *wire;      /* NULL when connection is */
	struct http_head       head;
	enum route             route;
	struct refusal         refusal;
	char                  *body;
	size_t                 body_len, body_room, seen; /* seen: bytes received, with those that were discarded */
	bool                   began, modern, batch, too_large;
	bool                   suspended;
	char                   session[36];    /* given out with the answer to initialize; else empty */
	/* the response is a stream of events, which has begun; the client is gone */
	bool                   streams, gone;
	size_t                 pending;        /* calls that have not ended */
	json_t                *answers;        /* of a batch */
	int                    status;         /* 0: no answer yet */
	char                  *answer;         /* malloc'ed */
	size_t                 answer_len;
	char                  *events;         /* to be sent */
	size_t                 events_at, events_len, events_room; /* [at, len) is still to be sent */
	bool                   ended;          /* the stream ends after these events */
	int64_t                last_sent_ms;   /* when events were last sent */
};

struct http_post *http_post_create(struct http_server *s, struct MHD_Connection *connection);
/* The connection has finished the request. Frees the post, unless it has calls under way. */
void              http_post_detach_connection(struct http_post *p);

/* Bytes of the body. false: end the connection. */
bool              http_post_add_body(struct http_post *p, const char *bytes, size_t len);
/* The body is whole, or the connection was resumed: answer, or suspend it. */
enum MHD_Result   http_post_process(struct http_post *p);
/* A DELETE: ends the MCP session of the head, with its sessions of execute_code, and answers. */
enum MHD_Result   http_post_end_session(struct http_post *p);
/* Sends a comment if the stream has been silent for long. */
void              http_post_send_keep_alive(struct http_post *p, int64_t now_ms);
/* The client has shut down its sending side: a modern one is gone. */
void              http_post_abort_if_modern(struct http_post *p);
/* Breaks the response off: the client is gone, or the server ends. */
void              http_post_abort(struct http_post *p);

enum MHD_Result http_respond_text(struct http_post *p, int status, const char *type, const char *text);
enum MHD_Result http_respond_refusal(struct http_post *p);
