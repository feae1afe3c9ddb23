/* tool_execute_code.c - run a program, and tell all about it */
#include "attend.h"
#include "executions.h"
#include "facts.h"
#include "findings.h"
#include "metrics.h"
#include "order.h"
#include "choice.h"
#include "reply.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>

static const char *const formats[] = { "json", "text", NULL };

/* clang-format off */
static const struct argument rows[] = {
	/* name                type             least    most        preset        meaning */
	{ { "code",            FIELD_STR,    0, 0,       FIELD_ANY,  0,            "Python program. The value of its last expression, or its variable result, comes back as result", NULL, NULL }, true },
	{ { "timeout",         FIELD_MILLI,  0, 10,      86400000,   FIELD_UNSAID, "Seconds until it is killed; at most 300 unless the server says otherwise. Default 30", NULL, NULL }, false },
	{ { "memory_limit",    FIELD_SIZE,   0, 8 * MIB, 1024 * GIB, FIELD_UNSAID, "Memory, as \"256m\" or \"1g\"; a number counts MiB. Default: the profile's", NULL, NULL }, false },
	{ { "stdin",           FIELD_STR,    0, 0,       FIELD_ANY,  0,            "What the program reads from standard input; nothing by default", NULL, NULL }, false },
	{ { "args",            FIELD_WORDS,  0, 0,       1024,       0,            "Its arguments, sys.argv[1:]", NULL, NULL }, false },
	{ { "env",             FIELD_MAP,    0, 0,       64,         0,            "More environment variables", NULL, NULL }, false },
	{ { "profile",         FIELD_STR,    0, 0,       63,         0,            "Which packages and limits, as basic or data-science; get_sandbox_info lists them", NULL, NULL }, false },
	{ { "allowed_imports", FIELD_WORDS,  0, 0,       512,        0,            "Only these modules may be imported, as [\"math\", \"json\"]; any when empty", NULL, NULL }, false },
	{ { "validate",        FIELD_BOOL,   0, 0,       1,          0,            "Check the code first (validate_code), and run it only if it passes", NULL, NULL }, false },
	{ { "format",          FIELD_CHOICE, 0, 0,       1,          FIELD_UNSAID, "The answer: json, one object; text, made to be read", formats, NULL }, false },
	{ { "detail",          FIELD_BOOL,   0, 0,       1,          FIELD_UNSAID, "json: every key, and all output that was kept; else long output is cut in its middle, and what says nothing is left out", NULL, NULL }, false },
	{ { "capture_output",  FIELD_BOOL,   0, 0,       1,          1,            "false: leave stdout and stderr out of the answer", NULL, NULL }, false },
	{ { "echo_result",     FIELD_BOOL,   0, 0,       1,          FIELD_UNSAID, "Append the result to stdout, as an interpreter does", NULL, NULL }, false },
	{ { "use_container",   FIELD_BOOL,   0, 0,       1,          FIELD_UNSAID, "Accepted for older clients; every run is isolated", NULL, NULL }, false },
	{ { 0 }, false },
};
/* clang-format on */

/* One call, until its program is asked for. */
struct work {
	struct call      *call;
	json_t           *arguments; /* checked */
	json_t           *warnings;
	struct fact       fact;
	json_t           *explained;
	struct execution *check;
	struct attendant  checked;
};

static void work_free(struct work *w)
{
	w->call->cancel = NULL;
	fact_forget(&w->fact);
	if (w->check)
		execution_leave(w->check, &w->checked);
	json_decref(w->arguments);
	json_decref(w->warnings);
	json_decref(w->explained);
	free(w);
}

static void cancel(struct call *c)
{
	work_free(c->work);
}

/* Of a call that came to nothing: as it was said, for some other argument may have been the mistake. */
static void answer_outcome(struct call *c, const struct outcome *o)
{
	const struct settings *s         = c->mcp->settings;
	const json_t          *arguments = json_object_get(c->params, "arguments"), *detail = json_object_get(arguments, "detail");
	const char            *format    = json_string_value(json_object_get(arguments, "format"));

	reply(c, o, &(struct answer_wish){ .as_text = format ? strcmp(format, "text") == 0 : s->reply == REPLY_TEXT,
					   .detail = json_is_boolean(detail) ? json_is_true(detail) : s->detail });
}

static void answer_refused(struct call *c, const char *why, bool is_ours)
{
	scoped_outcome o;

	outcome_refused(&o, why);
	if (is_ours)
		strcpy(o.exit_reason, "setup_failed");
	answer_outcome(c, &o);
}

static void refuse(struct work *w, const struct err *why)
{
	struct call *c       = w->call;
	bool         is_ours = why->kind != ERR_BAD_SPEC && why->kind != ERR_DENIED;

	work_free(w);
	metrics_refused(c->mcp->metrics, is_ours ? "setup_failed" : "denied");
	answer_refused(c, why->text, is_ours);
}

/* --- the last step --- */

static struct execution *start(struct work *w, json_t *message, struct err *e)
{
	const json_t *code = json_object_get(w->arguments, "code"), *input = json_object_get(w->arguments, "stdin");
	const struct execution_order order = {
		.message   = message,
		.code      = json_string_value(code),
		.code_len  = json_string_length(code),
		.input     = json_string_value(input),
		.input_len = json_string_length(input),
		.principal = w->call->channel->principal,
	};

	return execution_start(w->call->mcp, &order, e);
}

static void run(struct work *w)
{
	struct call       *c    = w->call;
	struct answer_wish wish = { 0 };
	struct execution  *x    = NULL;
	json_t            *message;
	struct err         e;

	if (order_run(c->mcp->settings, w->arguments, w->explained, &message, &wish, &e) == 0)
		x = start(w, message, &e);
	if (!x) {
		refuse(w, &e);
		return;
	}
	x->wish          = wish;
	x->wish.warnings = json_incref(w->warnings);
	work_free(w);
	attend(c, x, c->mcp->settings->yield_after_ms);
}

/* --- a check before it --- */

static void refuse_findings(struct work *w, json_t *findings)
{
	struct call   *c = w->call;
	scoped_outcome o;

	outcome_refused(&o, "Code validation failed");
	o.findings   = findings_short(findings);
	o.is_failure = false; /* the program's fault */
	work_free(w);
	metrics_refused(c->mcp->metrics, "validation");
	answer_outcome(c, &o);
}

/* Nothing was checked: that says nothing about the program. */
static void answer_unchecked(struct work *w, const struct execution *x)
{
	struct call   *c = w->call;
	scoped_outcome o;

	outcome_of(&o, x);
	work_free(w);
	answer_outcome(c, &o);
}

static void on_checked(void *owner, struct execution *x)
{
	struct work *w = owner;
	json_t      *findings;

	if (!x->record) {
		answer_unchecked(w, x);
		return;
	}
	findings = findings_json(x);
	execution_leave(x, &w->checked);
	w->check = NULL;
	if (json_is_true(json_object_get(findings, "valid")))
		run(w);
	else
		refuse_findings(w, findings);
	json_decref(findings);
}

static void check(struct work *w)
{
	struct err e;

	w->checked = (struct attendant){ .ended = on_checked, .owner = w };
	w->check   = findings_seek(w->call, w->arguments, w->explained, &w->checked, &e);
	if (!w->check)
		refuse(w, &e);
}

/* --- the first step --- */

static void on_explained(void *owner, const json_t *reply, const struct err *why)
{
	struct work *w = owner;

	if (!reply) {
		refuse(w, why);
		return;
	}
	w->explained = json_incref((json_t *)reply);
	if (json_is_true(json_object_get(w->arguments, "validate")))
		check(w);
	else
		run(w);
}

static const char *profile_of(const struct work *w)
{
	const char *asked = json_string_value(json_object_get(w->arguments, "profile"));

	return asked && *asked ? asked : choice_profile(w->call->mcp->settings);
}

/* What models send instead of code is told in the published words. */
static int take(struct work *w, const json_t *given, struct err *e)
{
	const json_t *code = json_object_get(given, "code");

	if (json_is_string(code) && order_check_code(w->call->mcp->settings, code, e) < 0)
		return -1;
	w->arguments = arguments_take(rows, given, w->warnings, e);
	return w->arguments ? 0 : -1;
}

static void call(struct call *c, const json_t *given)
{
	struct work *w = calloc(1, sizeof *w);
	struct err   e;

	if (!w) {
		answer_refused(c, "out of memory", true);
		return;
	}
	w->call     = c;
	w->warnings = json_array();
	w->fact     = (struct fact){ .known = on_explained, .owner = w };
	c->work     = w;
	c->cancel   = cancel;
	if (take(w, given, &e) < 0)
		refuse(w, &e);
	else
		fact_ask(&w->fact, c->mcp, "explain", profile_of(w));
}

/* Counted by who refuses. */
static void refuse_call(struct call *c, const char *why)
{
	answer_refused(c, why, false);
}

const struct tool tool_execute_code = {
	.name        = "execute_code",
	.title       = "Execute Python code",
	.description = "Run a Python 3 program in an isolated sandbox and get its output, its result and what it cost. Each call starts fresh: "
		       "nothing is kept between calls, there is no network, and files are gone afterwards (write to /workspace or /tmp). "
		       "The value of the last expression, or of the variable result, comes back as result; print() what else you want to see. "
		       "A program that raises is not an error of the tool: read error, traceback, exit_reason and hint. "
		       "A run that takes long answers first with exit_reason \"running\" and an execution_id: go on with wait_execution, "
		       "or end it with cancel_execution. get_sandbox_info tells packages, profiles and limits. "
		       "To return an image, make the result a text \"data:image/png;base64,...\".",
	.with_servers = "Call them as tools.SERVER.NAME(argument=value), without import; find_tools tells names and signatures. Call many in one program and "
			"print only what you need. A call that fails raises ToolError, one that is not allowed ToolDenied.",
	.arguments   = rows,
	.leaves_nothing = true,
	.resumes     = true,
	.read_only   = false,
	.destructive = false,
	.idempotent  = false,
	.open_world  = false,
	.call        = call,
	.refuse      = refuse_call,
};
