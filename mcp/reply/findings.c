#include "findings.h"

#include "run_request.h"

#include "hints.h"
#include "clean.h"
#include "member.h"

#include <stdlib.h>
#include <string.h>

static json_t *copy_member_or_null(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return value ? json_incref((json_t *)value) : json_null();
}

/* "Line 1: Import 'os' is not allowed" */
static json_t *issues_to_sentences(const json_t *rows)
{
	json_t *list = json_array();

	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i), *line = json_object_get(row, "line");

		if (json_is_integer(line))
			json_array_append_new(list,
					      json_sprintf("Line %" JSON_INTEGER_FORMAT ": %s",
							   json_integer_value(line), member_text(row, "message")));
		else
			json_array_append_new(list, json_string(member_text(row, "message")));
	}
	return list;
}

/* Advice that a run would get if these imports failed. */
static void add_import_recommendations(const json_t *imports, json_t *recommendations)
{
	static const struct advice_about about = { .has_stdin = true };

	for (size_t i = 0; i < json_array_size(imports); i++) {
		const char *name  = json_string_value(json_array_get(imports, i));
		json_t     *error = json_pack("{ss so}", "type", "ModuleNotFoundError", "message",
					      json_sprintf("No module named '%.*s'", (int)strcspn(name, "."), name));
		const char *words = advice_for_exception(error, &about);

		if (*words)
			json_array_append_new(recommendations, json_string(words));
		json_decref(error);
	}
}

/* The findings, both flat and as the object "validation". Takes error, errors and warnings over. */
static json_t *findings_build_json(const json_t *report, bool valid, const char *message, json_t *error, json_t *errors,
			     json_t *warnings)
{
	const json_t *syntax = json_object_get(report, "syntax_error");
	json_t       *validation, *analysis, *recommendations = json_array(),
				       *imports = copy_member_or_null(report, "imports");

	json_array_extend(recommendations, json_object_get(report, "recommendations"));
	if (!json_is_array(imports))
		imports = json_array();
	add_import_recommendations(imports, recommendations);
	validation = json_pack("{sb ss sO so}", "valid", valid, "message", message, "errors", errors, "compiled",
			       json_boolean(valid || (report && !json_is_object(syntax))));
	analysis   = json_pack("{so so so}", "line_count", copy_member_or_null(report, "line_count"), "character_count",
			       copy_member_or_null(report, "character_count"), "estimated_complexity",
			       copy_member_or_null(report, "estimated_complexity"));
	return json_pack("{sb ss so so so so so so so so so so so}", "valid", valid, "message", message, "error", error,
			 "errors", errors, "warnings", warnings, "line", copy_member_or_null(syntax, "line"), "offset",
			 copy_member_or_null(syntax, "offset"), "text", copy_member_or_null(syntax, "text"),
			 "security_issues", json_null(), "imports", imports, "validation", validation, "analysis",
			 analysis, "recommendations", recommendations);
}

/* For a check that has no result: its parser crashed or was killed by a limit, or nothing could be run. */
static json_t *findings_json_of_failed_check(const struct execution *x)
{
	const char *reason = member_text(x->record, "exit_reason");
	json_t     *error;

	if (x->record)
		error = json_sprintf("The code could not be checked: the parser ended with %s",
				     strcmp(reason, "exited") == 0 ? "no answer" : reason);
	else
		error = json_sprintf("The code could not be checked: %s", x->failure.text);
	return findings_build_json(NULL, false, json_string_value(error), error, json_pack("[O]", error), json_null());
}

json_t *findings_json(const struct execution *x)
{
	const json_t *report = x->program_report, *syntax = json_object_get(report, "syntax_error"),
		     *line   = json_object_get(syntax, "line");
	const char   *text   = member_text(syntax, "message");
	json_t       *errors, *warnings, *error;

	if (!report || strcmp(member_text(x->record, "exit_reason"), "exited") != 0)
		return findings_json_of_failed_check(x);
	errors = issues_to_sentences(json_object_get(report, "errors"));
	/* a syntax error is also one of the errors, for clients that read no other key */
	if (json_is_object(syntax) && !json_array_size(errors))
		json_array_append_new(errors, json_is_integer(line)
						      ? json_sprintf("Line %" JSON_INTEGER_FORMAT ": Syntax error: %s",
								     json_integer_value(line), text)
						      : json_sprintf("Syntax error: %s", text));
	if (json_is_object(syntax))
		error = json_sprintf("Syntax error: %s", text);
	else
		error = json_array_size(errors) ? json_incref(json_array_get(errors, 0)) : json_null();
	warnings = issues_to_sentences(json_object_get(report, "warnings"));
	if (!json_array_size(warnings)) {
		json_decref(warnings);
		warnings = json_null();
	}
	return findings_build_json(report, json_is_true(json_object_get(report, "valid")) && !json_array_size(errors),
			     member_text(report, "message"), error, errors, warnings);
}

json_t *findings_summary_json(const json_t *findings)
{
	return json_pack("{sO sO sO}", "valid", json_object_get(findings, "valid"), "errors",
			 json_object_get(findings, "errors"), "message", json_object_get(findings, "message"));
}

struct execution *findings_start_check(struct call *c, const json_t *arguments, const json_t *explained,
				       struct waiter *a, struct err *e)
{
	const json_t                  *code  = json_object_get(arguments, "code");
	const struct execution_request request = {
		.message   = run_request_make_check(c->mcp->settings, json_object_get(arguments, "allowed_imports"),
						    explained),
		.code      = json_string_value(code),
		.code_len  = json_string_length(code),
		.principal = c->channel->principal,
	};
	struct execution *x = execution_start(c->mcp, &request, e);

	if (x)
		execution_add_waiter(x, a);
	return x;
}
