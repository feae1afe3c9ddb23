/*
 * api_run.h - one run for a client, from its program to its outcome: alone in a jail, or in a session.
 *
 * Runs wait here while all places are taken, those of their token are, or their session is busy; brigd's own queue is
 * behind that. The oldest that can begin does. An owner that is gone abandons its run, which is then cancelled.
 */
#pragma once
#include "api_session.h"
#include "program.h"

/* o: borrowed. Called once, never inside of api_run_start(); the run is freed afterwards. */
typedef void api_run_ended(void *owner, struct run_outcome *o);

/* Takes what p owns over. session: NULL, or it is used until the run has ended. NULL: memory is short. */
struct api_run *api_run_start(struct api *a, struct api_token *t, enum interface by, struct program *p,
			      struct api_session *session, api_run_ended *ended, void *owner);
void            api_run_abandon(struct api_run *r);
/* The fault for which it was refused at once; NULL: it waits, or runs. */
const struct run_outcome *api_run_refusal(const struct api_run *r);
bool            api_run_is_under_way(const struct api_run *r); /* else it waits */

/* For api.c. */
void api_runs_pump(void *api);
void api_runs_fail_waiting(struct api *a, const char *code, const char *text);
void api_runs_destroy(struct api *a);
