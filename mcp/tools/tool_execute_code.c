/* tool_execute_code.c - run a program, and report its output, its result and how it ended */
#include "waiter.h"
#include "profile_info.h"
#include "findings.h"
#include "member.h"
#include "ask_hosts.h"
#include "metrics.h"
#include "run_request.h"
#include "choice.h"
#include "reply.h"
#include "session_use.h"
#include "tool.h"
#include "workspace_file.h"

#include <stdlib.h>
#include <string.h>

static const char *const formats[] = { "json", "text", NULL };

/* clang-format off */
static const struct argument rows[] = {
	/* name, type, offset, least, most, preset, meaning */
	{ { "code", FIELD_STR, 0, 0, FIELD_ANY, 0, "Python program", NULL, NULL }, true,
	  "Python program. The value of its last expression, or its variable result, comes back as result" },
	{ { "session", FIELD_STR, 0, 0, PROTOCOL_NAME_MAX, 0, "A name of your choice", NULL, NULL }, false,
	  "A name of 1 to 64 letters, digits and ._-: calls with the same one share variables, files and running "
	  "programs, see Sessions below" },
	{ { "files", FIELD_ROWS, 0, 0, WORKSPACE_FILES_MAX, 0,
	    "Put into /workspace first: content is text, base64 bytes", NULL, workspace_file_fields }, false,
	  "Files that are put into /workspace before the program runs: objects with path, and content, a text, or "
	  "base64, bytes. In a session they replace those that are there" },
	{ { "timeout", FIELD_MILLI, 0, 10, 86400000, FIELD_UNSET,
	    "Seconds; default {timeout}, at most {most}", NULL, NULL }, false,
	  "Seconds until it is ended; more than --max-timeout becomes that, with a warning" },
	{ { "memory_limit", FIELD_SIZE, 0, 8 * MIB, 1024 * GIB, FIELD_UNSET, "As \"512m\"", NULL, NULL }, false,
	  "Memory, as \"256m\" or \"1g\"; a number counts MiB. The default is the profile's; more than its ceiling "
	  "becomes that, with a warning. In a session the first call sets it" },
	{ { "stdin", FIELD_STR, 0, 0, FIELD_ANY, 0, "", NULL, NULL }, false,
	  "What the program reads from standard input; nothing by default. Not in a session" },
	{ { "args", FIELD_WORDS, 0, 0, 1024, 0, "sys.argv[1:]", NULL, NULL }, false,
	  "Its arguments, sys.argv[1:]. Not in a session" },
	{ { "env", FIELD_MAP, 0, 0, 64, 0, "Environment variables", NULL, NULL }, false,
	  "More environment variables. In a session the first call sets them" },
	{ { "profile", FIELD_STR, 0, 0, 63, 0,
	    "Packages and limits; default {profile}; get_sandbox_info lists others", NULL, NULL }, false,
	  "Which packages and limits, as basic or data-science; get_sandbox_info lists them. A session has one" },
	{ { "allowed_imports", FIELD_WORDS, 0, 0, 512, 0, "Refuse other modules", NULL, NULL }, false,
	  "Only these modules may be imported, as [\"math\", \"json\"]; any when empty. Not in a session" },
	{ { "validate", FIELD_BOOL, 0, 0, 1, 0, "Run only what passes validate_code", NULL, NULL }, false,
	  "Check the code first (validate_code), and run it only if it passes" },
	{ { "format", FIELD_CHOICE, 0, 0, 1, FIELD_UNSET, "Of the answer", formats, NULL }, false,
	  "The answer: json, one object; text, made to be read" },
	{ { "detail", FIELD_BOOL, 0, 0, 1, FIELD_UNSET, "All keys and output", NULL, NULL }, false,
	  "json: every key, and all output that was kept; else long output is cut in its middle, and what says "
	  "nothing is left out" },
	{ { "capture_output", FIELD_BOOL, 0, 0, 1, 1, "", NULL, NULL }, UNLISTED,
	  "false: leave stdout and stderr out of the answer" },
	{ { "echo_result", FIELD_BOOL, 0, 0, 1, FIELD_UNSET, "Also to stdout", NULL, NULL }, UNLISTED,
	  "Append the result to stdout, as an interpreter does" },
	{ { "use_container", FIELD_BOOL, 0, 0, 1, FIELD_UNSET, "Ignored", NULL, NULL }, UNLISTED,
	  "Accepted for older clients; every run is isolated" },
	{ { 0 }, false, NULL },
};
/* clang-format on */

/* One call, until its run is started. */
struct work {
	struct call      *call;
	json_t           *arguments; /* checked */
	json_t           *warnings;
	struct profile_question       fact;
	json_t           *explained;
	const char       *session; /* its name, borrowed from arguments; "": none */
	json_t           *asked;   /* what the session has, or is to have; NULL: no session */
	struct execution *check;
	struct waiter     checked;
};

static void execute_work_free(struct call *c)
{
	struct work *w = c->work;

	c->cancel = NULL;
	profile_info_detach(&w->fact);
	if (w->check)
		execution_remove_waiter(w->check, &w->checked);
	json_decref(w->arguments);
	json_decref(w->warnings);
	json_decref(w->explained);
	json_decref(w->asked);
	free(w);
}

/*
 * Answers a call for which nothing was run. The form of the answer is taken from unchecked arguments, as another one
 * may be wrong.
 */
static void answer_call_without_run(struct call *c, const struct outcome *o)
{
	const struct settings *s         = c->mcp->settings;
	const json_t          *arguments = json_object_get(c->params, "arguments"),
		     *detail             = json_object_get(arguments, "detail");
	const char            *format    = json_string_value(json_object_get(arguments, "format"));

	reply_to_call(c, o,
		      &(struct answer_form){ .as_text = format ? strcmp(format, "text") == 0 : s->reply == REPLY_TEXT,
					     .detail  = json_is_boolean(detail) ? json_is_true(detail) : s->detail });
}

static void answer_call_refused(struct call *c, const char *why, bool is_ours)
{
	scoped_outcome o;

	outcome_init_refused(&o, why);
	if (is_ours)
		strcpy(o.exit_reason, "setup_failed");
	answer_call_without_run(c, &o);
}

static void execute_refuse(struct work *w, const struct err *why)
{
	struct call *c       = w->call;
	bool         is_ours = why->kind != ERR_BAD_SPEC && why->kind != ERR_DENIED;

	execute_work_free(w->call);
	metrics_count_refused(c->mcp->metrics, is_ours ? "setup_failed" : "denied");
	answer_call_refused(c, why->text, is_ours);
}

/* --- the last step --- */

/* The session of the request, which must be entered before the loop turns again: execution_start() does that. */
static int prepare_session_request(struct work *w, struct execution_request *request, struct answer_form *form,
				   struct err *e)
{
	const json_t *limits;

	request->timeout_ms = form->timeout_ms;
	request->session    = named_session_make(w->call, w->session, w->asked, w->explained, w->warnings, e);
	if (!request->session)
		return -1;
	limits             = json_object_get(request->session->message, "limits");
	form->memory_bytes = (uint64_t)json_integer_value(json_object_get(limits, "memory_bytes"));
	if (!form->memory_bytes)
		form->memory_bytes = run_request_default_memory(w->call->mcp->settings, w->explained);
	return 0;
}

static int prepare_request_without_session(struct work *w, struct execution_request *request)
{
	const json_t *input = json_object_get(w->arguments, "stdin");

	hosts_put_into_request(w->call->mcp, request->message, w->explained);
	request->input     = json_string_value(input);
	request->input_len = json_string_length(input);
	return 0;
}

static struct execution *execute_start_run(struct work *w, struct answer_form *form, struct err *e)
{
	const struct settings   *s       = w->call->mcp->settings;
	const json_t *code = json_object_get(w->arguments, "code"), *files = json_object_get(w->arguments, "files");
	struct execution_request request = {
		.code      = json_string_value(code),
		.code_len  = json_string_length(code),
		.principal = w->call->channel->principal,
	};
	int r;

	if (*w->session)
		r = run_request_make_call(s, w->arguments, w->explained, w->warnings, &request.message, form, e);
	else
		r = run_request_make_run(s, w->arguments, w->explained, w->warnings, &request.message, form, e);
	if (r < 0)
		return NULL;
	if (json_array_size(files))
		request.files = workspace_file_make_puts(files, &request.files_len, e);
	if (!json_array_size(files) || request.files)
		r = *w->session ? prepare_session_request(w, &request, form, e)
				: prepare_request_without_session(w, &request);
	else
		r = -1;
	if (r == 0)
		return execution_start(w->call->mcp, &request, e);
	json_decref(request.message);
	free(request.files);
	return NULL;
}

static void execute_run_program(struct work *w)
{
	struct call       *c    = w->call;
	struct answer_form form = { 0 };
	struct err         e;
	struct execution  *x = execute_start_run(w, &form, &e);

	if (!x) {
		execute_refuse(w, &e);
		return;
	}
	x->answer_form          = form;
	x->answer_form.warnings = json_incref(w->warnings);
	execute_work_free(c);
	call_wait_for_run(c, x, c->mcp->settings->yield_after_ms);
}

/* --- a check before it --- */

static void on_code_checked(void *owner, struct execution *x)
{
	struct work   *w        = owner;
	struct call   *c        = w->call;
	json_t        *findings = x->record ? findings_json(x) : NULL;
	bool           valid    = json_is_true(json_object_get(findings, "valid"));
	scoped_outcome o        = { 0 };

	if (valid) {
		execution_remove_waiter(x, &w->checked);
		w->check = NULL;
		execute_run_program(w);
	} else {
		if (findings)
			outcome_init_refused(&o, "Code validation failed");
		else
			outcome_fill(&o, x); /* the check could not be run, which means nothing for the program */
		o.findings = findings ? findings_summary_json(findings) : NULL;
		if (findings) {
			o.is_failure = false; /* the program's fault */
			metrics_count_refused(c->mcp->metrics, "validation");
		}
		execute_work_free(c);
		answer_call_without_run(c, &o);
	}
	json_decref(findings);
}

/* --- the first step --- */

static void on_profile_explained(void *owner, const json_t *reply, const struct err *why)
{
	struct work *w = owner;
	struct err   e;

	if (!reply) {
		execute_refuse(w, why);
		return;
	}
	w->explained = json_incref((json_t *)reply);
	if (!json_is_true(json_object_get(w->arguments, "validate"))) {
		execute_run_program(w);
		return;
	}
	w->checked = (struct waiter){ .ended = on_code_checked, .owner = w };
	w->check   = findings_start_check(w->call, w->arguments, w->explained, &w->checked, &e);
	if (!w->check)
		execute_refuse(w, &e);
}

static int parse_session_argument(struct work *w, struct err *e)
{
	w->session = named_session_parse_argument(w->arguments, e);
	if (!w->session)
		return -1;
	if (*w->session && !named_sessions_are_offered(w->call->mcp->settings)) {
		json_array_append_new(w->warnings,
				      json_string("The argument 'session' was ignored: there are no sessions here, and "
						  "nothing is kept; send the whole program"));
		w->session = "";
	}
	if (*w->session)
		w->asked = named_session_merge_asked(w->call, w->session, w->arguments, w->warnings, e);
	return *w->session && !w->asked ? -1 : 0;
}

/* An empty or too long text is refused in the words of the published server. */
static int execute_parse_arguments(struct work *w, const json_t *given, struct err *e)
{
	const json_t *code = json_object_get(given, "code");

	if (json_is_string(code) && run_request_check_code(w->call->mcp->settings, code, e) < 0)
		return -1;
	w->arguments = arguments_parse(rows, given, w->warnings, e);
	return w->arguments ? parse_session_argument(w, e) : -1;
}

static void execute_code_call(struct call *c, const json_t *given)
{
	struct work *w = calloc(1, sizeof *w);
	const char  *profile;
	struct err   e;

	if (!w) {
		answer_call_refused(c, "out of memory", true);
		return;
	}
	w->call     = c;
	w->session  = "";
	w->warnings = json_array();
	w->fact     = (struct profile_question){ .known = on_profile_explained, .owner = w };
	c->work     = w;
	c->cancel   = execute_work_free;
	if (execute_parse_arguments(w, given, &e) < 0) {
		execute_refuse(w, &e);
		return;
	}
	profile = member_text(w->asked ? w->asked : w->arguments, "profile");
	profile_info_ask(&w->fact, c->mcp->brigd_link, "explain",
			 *profile ? profile : choice_default_profile(c->mcp->settings));
}

/* The caller has counted it in the metrics. */
static void refuse_call_over_limit(struct call *c, const char *why)
{
	answer_call_refused(c, why, false);
}

const struct tool tool_execute_code = {
	.name        = "execute_code",
	.title       = "Execute Python code",
	.description = "Run Python 3 in a sandbox {network}.{packages} Each call starts fresh. The value of the last "
		       "expression comes back; print() the rest; "
		       "figures and images are shown. Files are in /workspace.{shown} If exit_reason is \"running\", "
		       "go on with wait_execution.",
	.manual = "Run a Python 3 program in a jail and get its output, its result and what it cost. Without session "
		  "each call starts fresh: nothing "
		  "is kept, and files are gone afterwards. A program that raises is not an error of the tool. A run "
		  "that takes long answers first "
		  "with exit_reason \"running\" and an execution_id.",
	.with_sessions  = " Calls that name the same session share variables and files.",
	.with_servers   = "Call them as tools.SERVER.NAME(argument=value); find_tools tells names and signatures. Call "
			  "many in one program, and print only what you need.",
	.arguments      = rows,
	.leaves_nothing = true,
	.resumes        = true,
	.call           = execute_code_call,
	.refuse         = refuse_call_over_limit,
};
