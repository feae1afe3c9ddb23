/*
 * api_session.h - sessions of brigd that stay between runs: of one request, or of a client that names them.
 *
 * A session is opened without `stays`: it ends with the connection to brigd, so a brig-api that is killed leaves none.
 * It is freed when it is over and nobody uses it. Runs in it wait in the queue of all runs (api_run.h).
 */
#pragma once
#include "api.h"
#include "run_client.h"
#include "run_outcome.h"

enum { API_SESSION_NAME_MAX = 128 };

enum api_session_state { API_SESSION_OPENS, API_SESSION_OPEN, API_SESSION_OVER };

struct api_session {
	TAILQ_ENTRY(api_session) link; /* while it is not over */
	struct api              *api;
	struct api_token        *token;
	char                     name[API_SESSION_NAME_MAX + 1]; /* "": it belongs to one request */
	char                     id[RUN_ID_LEN + 1];
	enum api_session_state   state;
	struct run_client        client;
	json_t                  *message;
	struct run_outcome       failure; /* why it is over; its fault is set */
	size_t                   uses;
	bool                     is_busy; /* a run is under way in it */
	bool                     is_closing; /* it was closed while it opened: brigd is told when it is open */
	bool                     has_answered; /* a run in it had a result, which its client knows */
};

/* Opens one; the caller uses it. NULL with the fault of o: it cannot be. */
struct api_session *api_session_open(struct api *a, struct api_token *t, const char *name, struct run_outcome *o);
/* The session of that client with this name, which is not over; NULL: there is none. */
struct api_session *api_session_find(struct api *a, const struct api_token *t, const char *name);
size_t              api_session_count(const struct api *a, const struct api_token *t); /* t NULL: of all */

void api_session_use(struct api_session *s);
void api_session_leave(struct api_session *s); /* may free it */
/* Everything in it ends. It may be in use; its runs then fail. */
void api_session_close(struct api_session *s);
void api_session_forget(struct api_session *s); /* for api.c: one that is closing */
