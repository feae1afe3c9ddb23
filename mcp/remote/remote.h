/*
 * remote.h - a server at an address, as a process that speaks lines on its standard input and output.
 *
 * The first line is {"url": ..., "headers": {...}, "sse": false}. Each later line is a JSON-RPC message, which is sent as a
 * POST of Streamable HTTP, or of HTTP+SSE (sse.h). What the server answers, as one object or as a stream of events, is written
 * as lines. Every request gets an answer: an error with the reason, if the server gives none.
 */
#pragma once
#include "lines.h"
#include "linked_list.h"
#include "rpc.h"
#include "sse.h"

#include <curl/curl.h>

struct exchange;

struct remote {
	CURLM                        *multi;
	char                         *url;
	struct curl_slist            *headers;     /* from the first line */
	struct lines                  lines;
	char                         *session;     /* the id of a legacy server, owned; NULL: none */
	char                          version[32];  /* the revision that initialize agreed on; "": none yet */
	json_t                       *mirrored;    /* the headers that tools ask for; see mirror.h */
	bool                          ends;
	int                           status;      /* to exit with */
	bool                          listens;     /* the stream for unasked messages was opened, or refused for good */
	int64_t                       listens_at_ms; /* when that stream is opened again; 0: never; 1: after a pause that grows with `listened` */
	unsigned                      listened;
	struct sse                    sse;
	TAILQ_HEAD(exchanges, exchange) exchanges;
};

/* Serves until standard input or the session of the server ends. Returns the exit status. */
int remote_serve(void);
