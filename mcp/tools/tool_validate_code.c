/* tool_validate_code.c - check a program without executing it, and report the findings */
#include "profile_info.h"
#include "findings.h"
#include "run_request.h"
#include "choice.h"
#include "tool.h"

#include <stdlib.h>

/* clang-format off */
static const struct argument rows[] = {
	{ { "code",            FIELD_STR,   0, 0, FIELD_ANY, 0, "", NULL, NULL }, true,
	  "Python program; it is not executed" },
	{ { "profile",         FIELD_STR,   0, 0, 63,        0, "", NULL, NULL }, false,
	  "Whose list of modules counts; default as of execute_code" },
	{ { "allowed_imports", FIELD_WORDS, 0, 0, 512,       0, "", NULL, NULL }, false,
	  "Only these modules are allowed, as [\"math\", \"json\"]" },
	{ { 0 }, false, NULL },
};

/* Only the key that a program looks at first: every model has to read this schema. */
static const char schema[] = "{\"type\":\"object\",\"properties\":{\"valid\":{\"type\":\"boolean\"}},\"required\":[\"valid\"]}";
/* clang-format on */

struct work {
	struct call      *call;
	json_t           *arguments;
	struct profile_question       fact;
	struct execution *check;
	struct waiter     checked;
};

static void validate_work_free(struct call *c)
{
	struct work *w = c->work;

	c->cancel = NULL;
	profile_info_detach(&w->fact);
	if (w->check)
		execution_remove_waiter(w->check, &w->checked);
	json_decref(w->arguments);
	free(w);
}

static void on_code_checked(void *owner, struct execution *x)
{
	struct work *w        = owner;
	struct call *c        = w->call;
	json_t      *findings = findings_json(x);

	validate_work_free(w->call);
	tool_answer_data(c, findings, false);
}

static void on_profile_explained(void *owner, const json_t *explained, const struct err *why)
{
	struct work *w = owner;
	struct err   e;

	if (!explained) {
		tool_end_work_with_text(w->call, why->text, true);
		return;
	}
	w->checked = (struct waiter){ .ended = on_code_checked, .owner = w };
	w->check   = findings_start_check(w->call, w->arguments, explained, &w->checked, &e);
	if (!w->check)
		tool_end_work_with_text(w->call, e.text, true);
}

static void validate_code_call(struct call *c, const json_t *given)
{
	struct work  *w    = tool_work_create(c, sizeof *w, validate_work_free);
	const json_t *code = json_object_get(given, "code");
	const char   *profile;
	struct err    e;

	if (!w)
		return;
	w->call = c;
	w->fact = (struct profile_question){ .known = on_profile_explained, .owner = w };
	if (!json_is_string(code) || run_request_check_code(c->mcp->settings, code, &e) == 0)
		w->arguments = arguments_parse(rows, given, NULL, &e);
	if (!w->arguments) {
		tool_end_work_with_text(w->call, e.text, true);
		return;
	}
	profile = json_string_value(json_object_get(w->arguments, "profile"));
	profile_info_ask(&w->fact, c->mcp->brigd_link, "explain", profile && *profile ? profile : choice_default_profile(c->mcp->settings));
}

const struct tool tool_validate_code = {
	.name  = "validate_code",
	.title = "Check Python code",
	.description =
		"Check Python without running it: syntax, imports outside of the profile, risky calls. Advice only.",
	.manual    = "Check a Python program without running it: syntax, imports outside of the profile's list, calls "
		     "that deserve a look. Says line by "
		     "line what was found, and how large and complex the program is. This is advice and policy, not "
		     "what "
		     "keeps anybody safe: the jail "
		     "does not depend on it.",
	.arguments = rows,
	.output_schema = schema,
	.read_only     = true,
	.idempotent    = true,
	.call          = validate_code_call,
};
