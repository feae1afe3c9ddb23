/*
 * run_client.h - one run as its client sees it: from the request to the end.
 *
 * Output is passed on or kept, stdin is pumped, a flood and a signal become a
 * cancel. run_client_run() returns when the run has ended, was refused, or
 * nobody is left who could tell: one of opened, ended, refused and lost is then set.
 * The connection is closed; run_client_done() waits for a private brigd.
 */
#pragma once
#include "early.h"
#include "request.h"
#include "run_files.h"
#include "server.h"
#include "stream.h"

struct run_client {
	struct server         server;
	struct request       *request;
	struct stream         out, err;
	struct stream         report; /* of the guest runner: hostile, too */
	int                   stdin_from, stdin_to; /* -1: closed */
	char                 *pending; /* what waits to be written to stdin; NULL: there is no stdin */
	size_t                pending_at, pending_len;
	bool                  sent, started, cancelled;
	char                  run[RUN_ID_LEN + 1]; /* "": not started */
	char                  limit[48]; /* "--timeout 0.5": the one that ended it; "": none did */
	struct run_files      moving;
	json_t               *files;   /* of the record; NULL: none were asked for */
	json_t               *opened;  /* the event of a session; it is then the end of what is heard */
	json_t               *ended;   /* the event */
	json_t               *refused; /* the error */
	struct err            lost;    /* kind NONE: nothing was */
};

/* Takes the server and the request's stdin over. */
void run_client_init(struct run_client *c, struct server *server, struct request *request);
/* Of a run that began early (early.h): after interrupt_catch(). */
void run_client_take_up(struct run_client *c, const struct early *early);
void run_client_run(struct run_client *c);
void run_client_done(struct run_client *c);
