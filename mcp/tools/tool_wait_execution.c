/* tool_wait_execution.c - wait for a run for which execute_code has answered "running" */
#include "waiter.h"
#include "handle_call.h"
#include "tool.h"

enum { WAIT_MS = 45 * 1000 };

/* clang-format off */
static const struct argument rows[] = {
	{ { "execution_id", FIELD_STR,   0, 0,  64,      0,            "", NULL, NULL }, true,
	  "From the answer of execute_code" },
	{ { "timeout",      FIELD_MILLI, 0, 10, 3600000, FIELD_UNSET, "Seconds; default 45", NULL, NULL }, false,
	  "Seconds to wait at most before it answers with what there is so far; by default as long as --yield-after" },
	{ { 0 }, false, NULL },
};
/* clang-format on */

static uint64_t wait_timeout_ms(const struct call *c, const json_t *arguments)
{
	const json_t *asked = json_object_get(arguments, "timeout");

	if (json_is_number(asked))
		return (uint64_t)(json_number_value(asked) * 1000 + 0.5);
	return c->mcp->settings->yield_after_ms ? c->mcp->settings->yield_after_ms : WAIT_MS;
}

static void wait_execution_call(struct call *c, const json_t *given)
{
	struct err        e;
	json_t           *arguments = arguments_parse(rows, given, NULL, &e);
	struct execution *x;

	if (!arguments)
		tool_answer_text(c, e.text, true);
	else if ((x = handle_call_find_execution(c, arguments)))
		call_wait_for_run(c, x, wait_timeout_ms(c, arguments));
	json_decref(arguments);
}

const struct tool tool_wait_execution = {
	.name        = "wait_execution",
	.title       = "Wait for a running program",
	.description = "Wait for a program of execute_code that is \"running\".",
	.manual      = "Wait for a program that execute_code has answered for with exit_reason \"running\". Answers as "
		       "execute_code does: with the whole "
		       "result when the program has ended, or again with \"running\"; output that an earlier answer "
		       "had is "
		       "left out, except in detail. The result of a program that has ended is "
		       "kept for ten minutes.",
	.arguments   = rows,
	.resumes     = true,
	.read_only   = true,
	.idempotent  = true,
	.call        = wait_execution_call,
};
