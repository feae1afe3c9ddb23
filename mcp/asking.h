/*
 * asking.h - a program waits for a person's consent: the question as a client gets it, and what it answers.
 *
 * Clients of 2025-06-18 and 2025-11-25 are sent a request, elicitation/create,
 * one at a time for each run. Those of 2026-07-28 have the question as the
 * result of their call, and call again with the answer (resume.h); the run
 * lives on meanwhile. What a client answers counts only for a question that is
 * open: the bridge decides that, and a late answer changes nothing.
 */
#pragma once
#include "call.h"
#include "execution.h"

/* That a legacy client was asked and has not answered. */
struct elicitation {
	TAILQ_ENTRY(elicitation) link;
	char                     id[40];    /* of the request; nobody can guess it */
	struct execution        *execution;
	struct call             *call;      /* that it was sent beside; NULL: that one has ended */
	uint64_t                 number;    /* of the question */
};

/* Does the client ask people, with a form? capabilities: of initialize, or of a request. */
bool asking_is_offered(const json_t *capabilities);

/* Whoever attends the run is asked for what is open; where nobody who attends can be, it is denied. Nobody attends: it waits. */
void asking_look(struct execution *x);
/* The run is over: what was asked for it is taken back. */
void asking_forget(struct execution *x);

/* --- of the call that attends the run --- */

bool    asking_can(const struct call *c);
void    asking_elicit(struct call *c, struct execution *x); /* legacy */
json_t *asking_result(struct call *c, struct execution *x); /* modern: the result of the call, which ends; the run has a handle */
void    asking_call_ends(struct call *c);

/* --- answers --- */

void asking_take_response(struct mcp *m, const struct channel *ch, const struct rpc_message *message);
/* To the questions of the result; what is missing or malformed stays open. */
void asking_take_answers(struct execution *x, const json_t *responses);
