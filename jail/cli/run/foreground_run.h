/*
 * foreground_run.h - a run at brig's own standard streams: its output is passed on or kept, its input is written, and it ends with brig.
 *
 * It cancels the run when a signal comes or the output exceeds its limit. foreground_run_wait() returns when the run has ended, was
 * refused, or the connection is lost: one of opened, ended, refused and lost is then set. The connection is closed;
 * foreground_run_done() waits for a private brigd.
 */
#pragma once
#include "early.h"
#include "request.h"
#include "run_client.h"
#include "run_files.h"

struct foreground_run {
	struct run_client run;
	struct brigd      server;
	struct request   *request;
	int               stdin_from, stdin_to; /* -1: closed */
	char             *pending; /* owned: a buffer of bytes to be written to stdin; NULL: there is no stdin */
	size_t            pending_at, pending_len;
	int               narrow_of; /* the size of stdin's pipe, which holds one page until the program has read that; 0: it has its size */
	bool              input_ended;
	uint64_t          taken, unread; /* bytes from stdin_from, and those of them that the program did not read */
	bool              given_back;    /* the unread ones are what the next reader of that file gets */
	bool              sent;
	struct run_files  moving;
	json_t           *files;   /* of the record; NULL: none were asked for */
	json_t           *opened;  /* the event `opened` of a session, after which brig reads no more */
	json_t           *ended;   /* the event `ended` */
	json_t           *refused; /* brigd's reply with the error */
	struct err        lost;    /* why nothing more can come from brigd; kind NONE: it can */
};

extern const struct run_events foreground_run_events;
/* Takes over the server and the request's stdin_fd. c must not move. events: foreground_run_events, or others with the same owner. */
void foreground_run_init(struct foreground_run *c, struct brigd *server, struct request *request, const struct run_events *events);
/* Goes on with a run that began early (early.h). Call it after interrupt_install_handlers(). */
void foreground_run_adopt_early(struct foreground_run *c, const struct early *early);
void foreground_run_wait(struct foreground_run *c);
void foreground_run_done(struct foreground_run *c);

/* "--timeout 0.5": the limit that ended the run; "": none did. Returns buf. */
char *foreground_run_print_hit_limit(const struct foreground_run *c, char *buf, size_t len);

/* Callbacks that events of another kind of run share; their owner begins with a struct foreground_run. */
void foreground_run_on_waiting(void *owner, const char *why);
void foreground_run_on_refused(void *owner, const json_t *answer);
void foreground_run_on_lost(void *owner, const struct err *why);
