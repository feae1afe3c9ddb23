/*
 * api_server.h - the HTTP side of brig-api: its requests are let in or refused by their heads, and given to a handler.
 */
#pragma once
#include "api.h"

struct api_server {
	struct api       *api;
	char              address[API_HOST_MAX]; /* that it listens at, allowed in Host; "": it listens at all */
	char              url[300];
	size_t            bodies;                /* bytes of those of all exchanges */
	struct loop_timer drained;               /* the end of the time that runs have left */
	TAILQ_HEAD(, exchange) exchanges;
};

must_use int api_server_open(struct api_server *ret, struct api *a, struct err *e);
/*
 * Ends gracefully: what is under way is answered, new requests get 503 (or what the interface's clients repeat); then
 * api->ends is set, at the latest after ms. A second call ends at once.
 */
void         api_server_drain(struct api_server *s, uint64_t ms);
void         api_server_close(struct api_server *s);
