/*
 * elicitation.h - a program waits for a person's consent: sends the question to a client, and takes the answer.
 *
 * A client of 2025-06-18 or 2025-11-25 gets a request, elicitation/create, one at a time for each run. A client of
 * 2026-07-28 gets the question as the result of its call, and calls again with the answer (call_resume_wait()); the run
 * goes on meanwhile. An answer has an effect only while the bridge has the question open; a late one changes nothing.
 */
#pragma once
#include "call.h"
#include "execution.h"

/* Can the client ask a person, with a form? capabilities: those of initialize, or of a request. */
bool elicitation_is_offered(const json_t *capabilities);

/*
 * Sends open questions to a client that attends the run. If clients attend and none of them can ask a person, they
 * are denied; if none attends, they wait.
 */
void elicitation_send_open_questions(struct execution *x);
/* The run is over: its questions are withdrawn. */
void elicitation_withdraw(struct execution *x);

/* --- of the call that attends the run --- */

bool    elicitation_is_possible(const struct call *c);
void    elicitation_send(struct call *c, struct execution *x); /* to a legacy client */
/* To a modern client: the call must end with this result; the run must have a handle. */
json_t *elicitation_make_result(struct call *c, struct execution *x);
void    elicitation_detach_call(struct call *c, struct execution *x);

/* The same as elicitation_make_result(), about x->host: the run has ended, and must be kept. */
json_t *elicitation_make_host_result(struct call *c, struct execution *x);

/* Answers to the questions of elicitation_make_result(). A question whose answer is missing or malformed stays open. */
void elicitation_apply_consents(struct execution *x, const json_t *responses);
