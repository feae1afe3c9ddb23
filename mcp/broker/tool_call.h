/*
 * tool_call.h - one call of a program, from its name to its one answer.
 *
 * A call starts its server if necessary, looks the tool up, checks the arguments, asks the policy, asks a person if the policy
 * says so, writes the audit, and calls the server. It ends once, with ended(), or without it when it is dropped. Afterwards it
 * is never sent to the server, even if a person allows it then.
 */
#pragma once
#include "bridge_line.h"
#include "broker.h"

struct tool_call;

/* What the calls of one run share; a member of its bridge. */
struct tool_calls {
	struct broker *broker;
	const char    *run;      /* its id */
	json_t        *granted;  /* {name: definition} of tools that a person has allowed for this run */
	json_t        *refused;  /* {name: true} of tools that a person has refused */
	unsigned       asked;    /* questions so far */
	void         (*ended)(void *owner, struct tool_call *c, json_t *body, enum tool_outcome outcome); /* takes body over; may free the call */
	void         (*progress)(void *owner, struct tool_call *c, const json_t *params);
	void         (*asks)(void *owner, struct tool_call *c); /* it waits for a person: consent is set */
	bool         (*is_gone)(void *owner); /* the program has closed its end, even if the loop has not seen it yet */
	void          *owner;
};

enum { QUESTIONS_MAX = 100 }; /* of one run */

struct tool_call {
	struct tool_calls *all;
	int64_t            number;     /* in the audit */
	char              *name;       /* as the program wrote it; once the tool is found, its full name */
	json_t            *args;
	char               digest[65]; /* SHA-256 of args, in hexadecimal */
	char              *own;        /* "server.tool", the server as in the file; tool: as the server calls it */
	char              *tool;
	json_t            *definition; /* of the tool, when it was judged */
	struct server_wait wait;
	struct tool_server *server;
	struct rpc_ask     ask;
	uint64_t           consent;    /* the number of the question; 0: none is open */
	unsigned           wrong;      /* answers to it that were none */
	char              *question;   /* its text */
	struct loop_timer  expires;
	int64_t            began_ms, last_progress_ms;
	bool               is_audited; /* its end must be audited */
	bool               is_over;
};

/* Takes a reference to args. ended() may be called before this returns. */
void tool_call_start(struct tool_call *c, struct tool_calls *all, const char *name, const json_t *args);
/* The program has cancelled it. */
void tool_call_cancel(struct tool_call *c);
/* Ends the call without ended(): its bridge is closing. */
void tool_call_drop(struct tool_call *c);
void tool_call_done(struct tool_call *c); /* frees its memory; the call must be over */

enum consent_answer { CONSENT_ONCE, CONSENT_RUN, CONSENT_NO, CONSENT_CANNOT };
/* The answer to the open question of the call. why: of CONSENT_CANNOT. */
void tool_call_apply_consent(struct tool_call *c, enum consent_answer answer, const char *why);
