/*
 * http_post.h - one POST to /mcp: its body becomes calls, their answers one response.
 *
 * The connection is suspended while calls are worked on. The answer is one JSON
 * object, unless there is something to tell before it: then the response
 * becomes a stream of events. A post lives as long as its connection or one of
 * its calls; a modern client that goes away takes its calls with it.
 */
#pragma once
#include "call.h"
#include "http_head.h"
#include "http_server.h"

#include <microhttpd.h>

struct http_post {
	struct channel         channel;    /* first: a channel is a post */
	TAILQ_ENTRY(http_post) link;
	struct http_server    *server;
	struct MHD_Connection *connection; /* NULL: gone */
	struct http_connection *wire;      /* while connection is there */
	struct http_head       head;
	enum route             route;
	struct refusal         refusal;
	char                  *body;
	size_t                 body_len, body_room, seen; /* seen: with what was thrown away */
	bool                   began, modern, batch, too_large;
	bool                   suspended;
	char                   session[36];    /* given out with the answer to initialize; else empty */
	bool                   streams, gone;  /* events have begun; nobody listens any more */
	size_t                 pending;        /* calls that have not ended */
	json_t                *answers;        /* of a batch */
	int                    status;         /* 0: no answer yet */
	char                  *answer;         /* malloc'ed */
	size_t                 answer_len;
	char                  *events;         /* to be sent */
	size_t                 events_at, events_len, events_room; /* [at, len) is still to be sent */
	bool                   ended;          /* after these the stream ends */
	int64_t                told_ms;        /* when events were last sent */
};

struct http_post *http_post_create(struct http_server *s, struct MHD_Connection *connection);
/* The connection is done with it. */
void              http_post_leave(struct http_post *p);

/* Bytes of the body. false: end the connection. */
bool              http_post_take(struct http_post *p, const char *bytes, size_t len);
/* The body is whole, or the connection was resumed: answer, or suspend it. */
enum MHD_Result   http_post_go_on(struct http_post *p);
/* A comment, where a stream has been silent for long. */
void              http_post_keep_alive(struct http_post *p, int64_t now_ms);
/* The client sends nothing more: a modern one is gone. */
void              http_post_peer_ended(struct http_post *p);
/* The client is gone, or we are. */
void              http_post_abort(struct http_post *p);

enum MHD_Result http_respond_text(struct http_post *p, int status, const char *type, const char *text);
enum MHD_Result http_respond_refusal(struct http_post *p);
