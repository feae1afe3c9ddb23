/*
 * tool_call.h - one call of a program, from its name to its one answer.
 *
 * The server is started if need be, the tool looked up, the arguments
 * checked, the policy asked, a person asked if it says so, the audit written,
 * the server called. A call ends once, with ended(); one that is dropped
 * ends without it. After either nothing of it reaches the server any more,
 * whoever says yes then.
 */
#pragma once
#include "bridge_line.h"
#include "broker.h"

struct tool_call;

/* What the calls of one run have in common; of its bridge. */
struct tool_calls {
	struct broker *broker;
	const char    *run;      /* its id */
	json_t        *granted;  /* name: the definition that a person has allowed for this run */
	json_t        *refused;  /* names that a person has refused */
	unsigned       asked;    /* questions so far */
	void         (*ended)(void *owner, struct tool_call *c, json_t *body, enum tool_outcome outcome); /* takes body over; may free the call */
	void         (*progress)(void *owner, struct tool_call *c, const json_t *params);
	void         (*asks)(void *owner, struct tool_call *c); /* it waits for a person: consent */
	bool         (*is_gone)(void *owner); /* the program has hung up, whether that was heard already or not */
	void          *owner;
};

enum { QUESTIONS_MAX = 100 }; /* of one run */

struct tool_call {
	struct tool_calls *all;
	int64_t            number;     /* in the audit */
	char              *name;       /* as the program said it; then as the tool is called */
	json_t            *args;
	char               digest[65]; /* of them */
	char              *own;        /* "server.tool" with their own names, and of the tool alone */
	char              *tool;
	json_t            *definition; /* as it was judged */
	struct server_wait wait;
	struct tool_server *server;
	struct rpc_ask     ask;
	uint64_t           consent;    /* the number of the question; 0: none is open */
	char              *question;   /* its text */
	struct loop_timer  expires;
	int64_t            began_ms, told_ms;
	bool               is_audited; /* its end is written down, too */
	bool               is_over;
};

/* args: a reference of its own is taken. ended() may come at once. */
void tool_call_start(struct tool_call *c, struct tool_calls *all, const char *name, const json_t *args);
/* The program has cancelled it. */
void tool_call_cancel(struct tool_call *c);
/* Without ended(): nobody is there to be told. */
void tool_call_drop(struct tool_call *c);
void tool_call_done(struct tool_call *c); /* frees what it has; it is over */

enum consent_answer { CONSENT_ONCE, CONSENT_RUN, CONSENT_NO, CONSENT_CANNOT };
/* To the question of that call; why: of CANNOT. */
void tool_call_consent(struct tool_call *c, enum consent_answer answer, const char *why);
