/*
 * run_client.h - the client's side of one run, from the request to the end.
 *
 * It passes output on or keeps it, writes stdin, and cancels the run when a
 * signal comes or the output exceeds its limit. run_client_run() returns when the
 * run has ended, was refused, or the connection is lost: one of opened, ended,
 * refused and lost is then set. The connection is closed; run_client_done()
 * waits for a private brigd.
 */
#pragma once
#include "early.h"
#include "request.h"
#include "run_files.h"
#include "brigd_connection.h"
#include "run_talk.h"
#include "stream.h"

struct run_client {
	struct brigd          server;
	struct request       *request;
	struct stream         out, err;
	struct stream         report; /* from the guest runner; as hostile as output */
	int                   stdin_from, stdin_to; /* -1: closed */
	char                 *pending; /* owned: a buffer of bytes to be written to stdin; NULL: there is no stdin */
	size_t                pending_at, pending_len;
	int                   narrow_of; /* the size of stdin's pipe, which holds one page until the program has read that; 0: it has its size */
	bool                  input_ended;
	uint64_t              taken, unread; /* bytes from stdin_from, and those of them that the program did not read */
	bool                  given_back;    /* the unread ones are what the next reader of that file gets */
	bool                  sent, started, cancelled;
	char                  run[RUN_ID_LEN + 1]; /* "": not started */
	char                  limit[48]; /* "--timeout 0.5": the limit that ended the run; "": none did */
	struct run_files      moving;
	json_t               *files;   /* of the record; NULL: none were asked for */
	json_t               *opened;  /* the event `opened` of a session, after which brig reads no more */
	json_t               *ended;   /* the event `ended` */
	json_t               *refused; /* brigd's reply with the error */
	struct err            lost;    /* why nothing more can come from brigd; kind NONE: it can */
};

/* Takes over the server and the request's stdin_fd. */
void run_client_init(struct run_client *c, struct brigd *server, struct request *request);
/* Takes up a run that began early (early.h). Call it after interrupt_catch(). */
void run_client_take_up(struct run_client *c, const struct early *early);
void run_client_run(struct run_client *c);
void run_client_done(struct run_client *c);

/* The parts that other clients of a run share. The callbacks are those of run_talk.h; their owner begins with a struct run_client. */
void run_client_receive(struct run_client *c, const struct run_talk *to);
void run_client_on_waiting(void *owner, const char *run, const char *why);
void run_client_on_refused(void *owner, const json_t *answer);
