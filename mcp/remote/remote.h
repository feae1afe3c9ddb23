/*
 * remote.h - a server at an address, as a process that speaks lines on its standard input and output.
 *
 * The first line is {"url": ..., "headers": {...}, "sse": false}; each other
 * one a message of JSON-RPC, which becomes a POST of Streamable HTTP, or of
 * HTTP+SSE (sse.h). What is answered, as one object or as a stream of events,
 * is written as lines. A request always has an answer: where the server gives
 * none, an error that says why.
 */
#pragma once
#include "lines.h"
#include "rpc.h"
#include "sse.h"

#include <curl/curl.h>
#include <sys/queue.h>

struct exchange;

struct remote {
	CURLM                        *multi;
	char                         *url;
	struct curl_slist            *headers;     /* as configured */
	struct lines                  lines;
	char                          session[256]; /* of a legacy server; "": none */
	char                          version[32];  /* what initialize agreed on; "": nothing yet */
	json_t                       *mirrored;    /* mirror.h */
	bool                          ends;
	int                           status;      /* to exit with */
	bool                          listens;     /* a GET is there, or was refused for good */
	int64_t                       listens_at_ms; /* when it is tried again; 0: never */
	unsigned                      listened;
	struct sse                    sse;
	TAILQ_HEAD(exchanges, exchange) exchanges;
};

/* Serves until its input ends, or the session does; what to exit with. */
int remote_serve(void);
