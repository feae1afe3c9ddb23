/*
 * metrics_server.h - GET /metrics over HTTP, for every client that can connect.
 *
 * libmicrohttpd reads and writes; its epoll descriptor is a source of our loop, and there is one thread. Each connection
 * has one request without a body, one answer, and METRICS_SCRAPE_MS for both, whatever its peer does; when all places are
 * taken, the oldest connection makes room. brigd is asked at most once in METRICS_FRESH_MS, whatever the number of clients,
 * so they put no load on it. When it does not answer the status is 503, and the body has no figures.
 */
#pragma once
#include "loop.h"
#include "metrics_listener.h"

#include <sys/queue.h>

enum {
	METRICS_CONNECTIONS_MAX = 64,
	METRICS_SCRAPE_MS       = 10000,
	METRICS_FRESH_MS        = 1000,
	METRICS_BRIGD_MS        = 2000, /* how long brigd may take to answer; all clients wait meanwhile */
};

struct MHD_Daemon;

/* One connection of a client. */
struct scrape {
	TAILQ_ENTRY(scrape) link;
	int     fd; /* owned by libmicrohttpd */
	int64_t until_ms;
	bool    cut; /* shut down, and not yet closed by libmicrohttpd */
};

struct metrics_server {
	struct loop        loop;
	struct MHD_Daemon *daemon;
	struct loop_source source, signals;
	struct loop_timer  timer, tick;
	TAILQ_HEAD(scrapes, scrape) scrapes; /* the oldest first */
	size_t             scrapes_len;
	char              *page; /* the figures of brigd, or the reason why there are none; NULL: brigd was not asked yet */
	unsigned           status;
	int64_t            page_ms;
	bool               ends;
};

/* Serves until SIGTERM, SIGINT or SIGHUP. Takes l->fd over once libmicrohttpd has started; the caller still closes l. */
must_use int metrics_serve(struct metrics_listener *l, struct err *e);
