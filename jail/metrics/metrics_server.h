/*
 * metrics_server.h - GET /metrics over HTTP, for every client that can connect.
 *
 * Each connection has one request without a body, one answer, and METRICS_SCRAPE_MS for both, whatever its peer does.
 * brigd is asked at most once in METRICS_FRESH_MS, whatever the number of clients, so they put no load on it. When it
 * does not answer the status is 503, and the body has no figures.
 */
#pragma once
#include "metrics_listener.h"

enum {
	METRICS_CONNECTIONS_MAX = 64,
	METRICS_SCRAPE_MS       = 10000,
	METRICS_FRESH_MS        = 1000,
	METRICS_BRIGD_MS        = 2000, /* how long brigd may take to answer; all clients wait meanwhile */
};

/*
 * Serves until SIGTERM, SIGINT or SIGHUP. Takes l->fd over once libmicrohttpd has started; the caller still closes l.
 */
must_use int metrics_serve(struct metrics_listener *l, struct err *e);
