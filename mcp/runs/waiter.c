#include "waiter.h"

#include "ask_hosts.h"
#include "clean.h"
#include "elicitation.h"
#include "missing_module.h"
#include "output_file.h"
#include "profile_info.h"
#include "reply.h"
#include "yes_form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_SHOWN = 120 };

struct visit {
	struct client_request request; /* first: a pointer to it is one to the visit. About a host */
	struct call          *call;
	struct execution     *execution;
	struct waiter         waiter;
	struct loop_timer     wait, progress;
};

static void visit_detach_and_free(struct visit *v)
{
	client_request_detach(&v->request, v->call->mcp);
	loop_timer_clear(&v->call->mcp->loop, &v->wait);
	loop_timer_clear(&v->call->mcp->loop, &v->progress);
	v->call->cancel = NULL;
	elicitation_detach_call(v->call, v->execution);
	execution_remove_waiter(v->execution, &v->waiter);
	free(v);
}

/* The call ends with a question, and the client calls again (call_resume_wait()): until then the run must be kept. */
static bool visit_give_run_handle(struct visit *v)
{
	bool lent = !*v->execution->handle;

	if (!execution_give_handle(v->execution))
		return false;
	v->execution->is_lent |= lent;
	return true;
}

static void visit_end_with_result(struct visit *v, json_t *result)
{
	struct call *c = v->call;

	visit_detach_and_free(v);
	call_answer_result(c, result);
}

/* The outcome is made before the visit ends, which may free the run. */
static void visit_end_with_outcome(struct visit *v)
{
	struct call             *c           = v->call;
	const struct execution  *x           = v->execution;
	/* its warnings must not be used: they are freed with the run */
	const struct answer_form answer_form = x->answer_form;
	struct named_session    *session;
	struct output_files      files = { 0 };
	scoped_outcome           o;

	outcome_fill(&o, x);
	outcome_mark_reported(v->execution);
	if (x->record)
		profile_info_set_isolation(c->mcp->brigd_link, x->profile, json_object_get(x->record, "isolation"));
	session = output_file_build(&files, c, &o, x);
	visit_detach_and_free(v);
	if (session)
		output_file_put(c, session, &files, &o, &answer_form);
	else if (!missing_module_answer_later(c, &o, &answer_form))
		reply_to_call(c, &o, &answer_form);
}

/* --- a person is asked about a host that the run was refused --- */

static bool visit_request_host_consent(struct visit *v);

static void visit_set_host_consent(struct visit *v, bool is_allowed)
{
	struct execution *x = v->execution;

	hosts_set_consent(x->mcp, x->profile, x->host, is_allowed);
	*x->host = 0;
	if (!visit_request_host_consent(v))
		visit_end_with_outcome(v);
}

static void visit_on_host_consent(struct client_request *r, struct mcp *m, const struct rpc_message *response)
{
	(void)m;
	visit_set_host_consent((struct visit *)r, !response->error && yes_form_says_yes(response->result));
}

static void visit_on_host_timeout(void *owner)
{
	struct visit *v = owner;

	client_request_detach(&v->request, v->call->mcp);
	visit_set_host_consent(v, false);
}

static bool visit_request_host_consent(struct visit *v)
{
	struct call           *c = v->call;
	struct execution      *x = v->execution;
	const struct settings *s = c->mcp->settings;

	if (x->run.state != RUN_OVER || !s->ask_hosts || !elicitation_is_possible(c) || *x->host ||
	    !hosts_find_to_ask(x, x->host))
		return false;
	x->hosts_asked++;
	if (!revision_is_modern(c->revision)) {
		v->request = (struct client_request){ .answered = visit_on_host_consent };
		client_request_send(&v->request, c, "elicitation/create", hosts_consent_form(x->host));
		v->wait.due = visit_on_host_timeout;
		loop_timer_set(&c->mcp->loop, &v->wait, (int64_t)s->ask_timeout_ms);
		return true;
	}
	if (!visit_give_run_handle(v)) {
		*x->host = 0;
		return false;
	}
	visit_end_with_result(v, elicitation_make_host_result(c, x));
	return true;
}

static void visit_on_run_ended(void *owner, struct execution *x)
{
	(void)x;
	if (!visit_request_host_consent(owner))
		visit_end_with_outcome(owner);
}

/* If the run cannot get a handle the call goes on waiting. */
static void visit_on_wait_over(void *owner)
{
	struct visit *v = owner;

	if (execution_give_handle(v->execution))
		visit_end_with_outcome(v);
}

static void visit_cancel_and_free(struct call *c)
{
	struct visit *v = c->work;

	if (client_request_waits(&v->request))
		*v->execution->host = 0;
	visit_detach_and_free(v);
}

/* --- a person is asked about a call of a tool --- */

static bool visit_on_tool_question(void *owner, struct execution *x)
{
	struct visit *v = owner;

	if (!elicitation_is_possible(v->call))
		return false;
	if (!revision_is_modern(v->call->revision)) {
		elicitation_send(v->call, x);
		return true;
	}
	if (!visit_give_run_handle(v))
		return false;
	visit_end_with_result(v, elicitation_make_result(v->call, x));
	return true;
}

/* --- progress --- */

static void print_progress(const struct execution *x, double seconds, char *buf, size_t len)
{
	char        behind[QUEUED_BEHIND_MAX];
	size_t      n, clean_len = 0;
	const char *line  = execution_last_line(x, &n);
	char *clean = n ? clean_text(line, clean_whole_characters(line, n < 4096 ? n : 4096), false, &clean_len) : NULL;

	if (x->run.state == RUN_WAITS && *queued_call_print_blocker(&x->queued, behind, sizeof behind))
		snprintf(buf, len, "%.0f s, waiting for its turn in the session, behind %s", seconds, behind);
	else if (x->run.state == RUN_WAITS && queued_call_waits(&x->queued))
		snprintf(buf, len, "%.0f s, waiting for the session", seconds);
	else if (x->run.state == RUN_WAITS)
		snprintf(buf, len, "%.0f s, waiting for a free place", seconds);
	else if (clean && clean_len)
		snprintf(buf, len, "%.0f s, last output: %.*s", seconds,
			 (int)clean_cut_length(clean, clean_len, LINE_MAX_SHOWN), clean);
	else
		snprintf(buf, len, "%.0f s, no output yet", seconds);
	free(clean);
}

static void visit_on_progress(void *owner)
{
	struct visit           *v       = owner;
	const struct execution *x       = v->execution;
	double                  seconds = (double)(loop_now_ms() - x->asked_ms) / 1000;
	char                    text[LINE_MAX_SHOWN + 128];

	print_progress(x, seconds, text, sizeof text);
	call_send_progress(v->call, seconds, (double)x->answer_form.timeout_ms / 1000, text);
	loop_timer_set(&v->call->mcp->loop, &v->progress, (int64_t)v->call->mcp->settings->progress_ms);
}

void call_wait_for_run(struct call *c, struct execution *x, uint64_t wait_ms)
{
	struct visit *v = calloc(1, sizeof *v);

	if (!v) {
		struct rpc_error e;

		rpc_error_set(&e, RPC_INTERNAL, "out of memory");
		call_answer_failure(c, &e);
		return;
	}
	*v          = (struct visit){ .call = c, .execution = x };
	v->waiter   = (struct waiter){ .ended = visit_on_run_ended, .asks = visit_on_tool_question, .owner = v };
	v->wait     = (struct loop_timer){ .due = visit_on_wait_over, .owner = v };
	v->progress = (struct loop_timer){ .due = visit_on_progress, .owner = v };
	c->work     = v;
	c->cancel   = visit_cancel_and_free;
	execution_add_waiter(x, &v->waiter);
	if (x->run.state == RUN_OVER) {
		visit_on_run_ended(v, x);
		return;
	}
	if (x->tools.bridge.open) /* it may have asked before, when no call attended it */
		loop_timer_set(&c->mcp->loop, &x->question_timer, 0);
	if (wait_ms)
		loop_timer_set(&c->mcp->loop, &v->wait, (int64_t)wait_ms);
	if (c->progress_token)
		loop_timer_set(&c->mcp->loop, &v->progress, (int64_t)c->mcp->settings->progress_ms);
}

/* --- calls that come again, with answers --- */

/* The run that has given out the state of this call, for the same tool and arguments. */
static struct execution *find_run_by_request_state(const struct call *c)
{
	const char       *state = json_string_value(json_object_get(c->params, "requestState"));
	struct execution *x;

	TAILQ_FOREACH(x, &c->mcp->executions->all, link) {
		if (!*x->round || !state || strcmp(x->round, state) != 0 ||
		    strcmp(x->principal, c->channel->principal) != 0)
			continue;
		if (json_equal(json_object_get(c->params, "name"), json_object_get(x->round_of, "name")) &&
		    json_equal(json_object_get(c->params, "arguments"), json_object_get(x->round_of, "arguments")))
			return x;
	}
	return NULL;
}

void call_resume_wait(struct call *c)
{
	struct execution *x         = find_run_by_request_state(c);
	struct waiter     meanwhile = { 0 };
	struct rpc_error  e;

	if (!x) {
		rpc_error_set(&e, RPC_INVALID_PARAMS,
			      "requestState: no question of this name is open; call the tool again without it");
		call_answer_failure(c, &e);
		return;
	}
	execution_add_waiter(x, &meanwhile);
	*x->round = 0;
	if (x->is_lent) /* so that the run ends if this client cancels now, as with any other call */
		*x->handle = 0;
	x->is_lent = false;
	elicitation_apply_consents(x, json_object_get(c->params, "inputResponses"));
	call_wait_for_run(c, x, c->mcp->settings->yield_after_ms);
	execution_remove_waiter(x, &meanwhile);
}
