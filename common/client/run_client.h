/*
 * run_client.h - one run, or one session, from a client's request to its end.
 *
 * Every client of brigd uses it. brig has one run on a connection of its own, and waits with poll() for what
 * run_client_receive() and run_pipe_read() then read. brig-mcp has many runs on one brigd_link.h, whose loop drives
 * them.
 *
 * The run's id, its output (stream.h), the limit that ended it and the cancel, which is sent once, are kept here; the
 * rest goes to the callbacks. A cancel before the id is known is remembered, and sent as soon as it is.
 */
#pragma once
#include "brigd_link.h"
#include "program_report.h"
#include "stream.h"

enum run_stream { RUN_STDOUT, RUN_STDERR, RUN_RESULT, RUN_STDIN, RUN_TOOLS, RUN_STREAMS };

enum run_state {
	RUN_WAITS, /* to be asked for, for brigd's answer, or for a free cell */
	RUN_RUNS,
	RUN_OVER,  /* its owner has called run_client_close() */
};

struct run_pipe {
	struct stream      stream;
	struct run_client *run;
	struct loop_source source;   /* only with a loop, as rest */
	struct loop_timer  rest;     /* runs out when the pipe is read again */
	size_t             reported; /* the owner's: how many bytes it has passed on */
};

/* NULL: the owner does not need it. Those from opened() on, but not output(), may free the run. */
struct run_events {
	void (*waiting)(void *owner, const char *why); /* for a free cell; the id is known */
	/* fd[RUN_STDIN] and fd[RUN_TOOLS], non-blocking, or -1. Those that are not taken (fd_take()) are closed. */
	void (*started)(void *owner, int fd[RUN_STREAMS]);
	void (*output)(void *owner, struct run_pipe *p); /* after each read */
	void (*opened)(void *owner, const json_t *event); /* a session */
	void (*ended)(void *owner, const json_t *event);
	void (*refused)(void *owner, const json_t *answer); /* before it has started */
	void (*lost)(void *owner, const struct err *why); /* the connection broke. why: NULL: brigd has closed it */
};

struct run_client {
	const struct run_events *events;
	void                    *owner;
	struct brigd_link       *link; /* NULL: the run has the connection sock for itself */
	struct loop             *loop; /* of the link */
	int                      sock; /* borrowed */
	struct question          question;
	bool                     is_once;    /* it is not asked again if the connection breaks */
	bool                     interrupts; /* a cancel interrupts first: an interpreter of a session then stays */
	struct loop_timer        kill_timer; /* cancels it if it does not end after an interrupt */
	enum run_state           state;
	char                     id[RUN_ID_LEN + 1]; /* "": not known yet */
	const char              *cancelled; /* the reason, a constant; NULL: it was not cancelled */
	char                     limit[48]; /* the limit that ended it, by its name in a profile; "": none did */
	uint64_t                 limit_value;
	struct run_pipe          out, err;
	struct run_pipe          report; /* of the guest runner; as hostile as output */
	struct loop_source       input_source;
	const char              *input; /* with a loop: borrowed; goes to a stdin that started() does not take */
	size_t                   input_at, input_len;
};

/* link, with its loop; or NULL, and sock. c must not move. */
void         run_client_init(struct run_client *c, struct brigd_link *link, int sock, const struct run_events *events,
			     void *owner);
/*
 * Sends the request run, exec or open. May be called again after a refusal. Message and descriptors must live until
 * the answer.
 */
must_use int run_client_start_request(struct run_client *c, const json_t *message, const int *fds, size_t n,
				      struct err *e);
/* Was the request sent, or may it be? A cancel then needs brigd's answer. */
bool         run_client_is_sent(const struct run_client *c);
/* Cancels once. reason: one of the protocol's. */
void         run_client_interrupt_or_cancel(struct run_client *c, const char *reason);
/* Sends a request whose answer is ignored. Takes message over. */
void         run_client_send(struct run_client *c, json_t *message);
/* Nothing more is sent or received, and no callback is called. May be called twice. */
void         run_client_close(struct run_client *c);
void         run_client_done(struct run_client *c);

/* --- without a loop --- */

/* Waits for one message of brigd and handles it. */
void run_client_receive(struct run_client *c);
void run_client_handle(struct run_client *c, struct datagram *d);
void run_pipe_read(struct run_pipe *p);

/* --- at the end --- */

/* Reads what the pipes have. They are not read to their end: a process outside the jail may have got a writing end. */
void    run_client_drain(struct run_client *c);
/* Only the client reads the output, so brigd cannot count it. */
void    run_client_add_byte_counts(const struct run_client *c, json_t *record);
/* The report of the guest runner, which the program may have forged: a new reference, or NULL with *e. */
json_t *run_client_report(const struct run_client *c, enum program_report_kind kind, struct err *e);

/* The request cancel. reason: one of the protocol's, or NULL. A new reference; NULL when run is not UTF-8. */
json_t *cancel_request_to_json(const char *run, const char *reason);
