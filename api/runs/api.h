/*
 * api.h - what all parts of a brig-api share: the loop, the settings, the connection to brigd, runs and sessions.
 *
 * There is one thread. main() owns the struct; all others have a pointer.
 */
#pragma once
#include "api_metrics.h"
#include "api_settings.h"
#include "api_token.h"
#include "brigd_link.h"
#include "http_daemon.h"

struct route;
struct submissions;
struct api_session;
struct api_run;

TAILQ_HEAD(api_run_list, api_run);

struct api {
	struct loop                loop;
	const struct api_settings *settings;
	struct api_tokens          tokens;
	struct brigd_link         *link;
	struct http_daemon         http;
	const struct route        *routes;             /* that are served */
	struct api_run_list        waiting, under_way; /* runs; the oldest first */
	size_t                     n_waiting, n_under_way;
	struct loop_timer          pump, late;         /* start runs that wait; refuse those that waited too long */
	TAILQ_HEAD(, api_session)  sessions, closing;  /* closing: before brigd had opened them */
	struct submissions        *submissions;        /* of Judge0 */
	struct api_metrics         metrics;
	bool                       drains; /* nothing new begins */
	bool                       ends;   /* the loop must be left */
};

/* settings are borrowed; brigd is not asked yet. */
must_use int api_open(struct api *ret, const struct api_settings *settings, struct err *e);
/* Ends all runs and sessions; their owners are called no more. */
void         api_close(struct api *a);
