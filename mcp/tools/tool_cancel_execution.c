/* tool_cancel_execution.c - end a run for which execute_code has answered "running" */
#include "waiter.h"
#include "handle_call.h"
#include "tool.h"

/* clang-format off */
static const struct argument rows[] = {
	{ { "execution_id", FIELD_STR, 0, 0, 64, 0, "", NULL, NULL }, true,
	  "From the answer of execute_code" },
	{ { 0 }, false, NULL },
};
/* clang-format on */

/* The run is attended first: one that has not started ends inside of execution_request_cancel(). */
static void cancel_execution_call(struct call *c, const json_t *given)
{
	struct err        e;
	json_t           *arguments = arguments_parse(rows, given, NULL, &e);
	struct execution *x         = NULL;

	if (!arguments)
		tool_answer_text(c, e.text, true);
	else if ((x = handle_call_find_execution(c, arguments))) {
		x->run.out.reported = x->run.err.reported = 0; /* the last answer has all */
		call_wait_for_run(c, x, 0);
	}
	if (x && x->run.state != RUN_OVER)
		execution_request_cancel(x, "cancelled");
	json_decref(arguments);
}

const struct tool tool_cancel_execution = {
	.name        = "cancel_execution",
	.title       = "End a running program",
	.description = "End a program of execute_code that is \"running\"; answers with its output.",
	.manual    = "End a program that execute_code has answered for with exit_reason \"running\", and everything it "
		     "started. Answers with what it "
		     "had written by then; exit_reason is \"cancelled\", or what it ended with before. In a session "
		     "it is "
		     "interrupted, and its "
		     "variables stay.",
	.arguments = rows,
	.idempotent = true,
	.unbounded  = true,
	.call       = cancel_execution_call,
};
