#include "findings.h"

#include "run_request.h"

#include "hints.h"
#include "clean.h"
#include "member.h"

#include <stdlib.h>
#include <string.h>

static json_t *copy_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return value ? json_incref((json_t *)value) : json_null();
}

/* "Line 1: Import 'os' is not allowed" */
static json_t *sentences(const json_t *rows)
{
	json_t *list = json_array();

	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i), *line = json_object_get(row, "line");

		if (json_is_integer(line))
			json_array_append_new(list, json_sprintf("Line %" JSON_INTEGER_FORMAT ": %s", json_integer_value(line), member_text(row, "message")));
		else
			json_array_append_new(list, json_string(member_text(row, "message")));
	}
	return list;
}

static json_t *list_or_null(json_t *list)
{
	if (json_array_size(list))
		return list;
	json_decref(list);
	return json_null();
}

/* A syntax error is also one of the errors, for clients that read no other key. */
static json_t *errors_of(const json_t *said)
{
	json_t       *list   = sentences(json_object_get(said, "errors"));
	const json_t *syntax = json_object_get(said, "syntax_error"), *line = json_object_get(syntax, "line");

	if (json_is_object(syntax) && !json_array_size(list))
		json_array_append_new(list, json_is_integer(line) ? json_sprintf("Line %" JSON_INTEGER_FORMAT ": Syntax error: %s", json_integer_value(line), member_text(syntax, "message")) :
								    json_sprintf("Syntax error: %s", member_text(syntax, "message")));
	return list;
}

static json_t *error_of(const json_t *said, const json_t *errors)
{
	const json_t *syntax = json_object_get(said, "syntax_error");

	if (json_is_object(syntax))
		return json_sprintf("Syntax error: %s", member_text(syntax, "message"));
	return json_array_size(errors) ? json_incref(json_array_get(errors, 0)) : json_null();
}

static json_t *analysis_of(const json_t *said)
{
	return json_pack("{so so so}", "line_count", copy_of(said, "line_count"), "character_count", copy_of(said, "character_count"), "estimated_complexity",
			 copy_of(said, "estimated_complexity"));
}

/* What a run would be told about these imports, if it had to be told. */
static void foresee(const json_t *imports, json_t *recommendations)
{
	static const struct advice_about about = { .has_stdin = true };

	for (size_t i = 0; i < json_array_size(imports); i++) {
		const char *name  = json_string_value(json_array_get(imports, i));
		json_t     *error = json_pack("{ss so}", "type", "ModuleNotFoundError", "message", json_sprintf("No module named '%.*s'", (int)strcspn(name, "."), name));
		const char *words = advice_of(error, &about);

		if (*words)
			json_array_append_new(recommendations, json_string(words));
		json_decref(error);
	}
}

/* The findings, both flat and as the object "validation". Takes error, errors and warnings over. */
static json_t *make(const json_t *said, bool valid, const char *message, json_t *error, json_t *errors, json_t *warnings)
{
	const json_t *syntax = json_object_get(said, "syntax_error");
	json_t       *wrapped, *recommendations = json_array(), *imports = copy_of(said, "imports");

	json_array_extend(recommendations, json_object_get(said, "recommendations"));
	if (!json_is_array(imports))
		imports = json_array();
	foresee(imports, recommendations);
	wrapped = json_pack("{sb ss sO so}", "valid", valid, "message", message, "errors", errors, "compiled", json_boolean(valid || (said && !json_is_object(syntax))));
	return json_pack("{sb ss so so so so so so so so so so so}", "valid", valid, "message", message, "error", error, "errors", errors, "warnings", warnings,
			 "line", copy_of(syntax, "line"), "offset", copy_of(syntax, "offset"), "text", copy_of(syntax, "text"), "security_issues", json_null(),
			 "imports", imports, "validation", wrapped, "analysis", analysis_of(said), "recommendations", recommendations);
}

/* For a check that has no result: its parser crashed or was killed by a limit, or nothing could be run. */
static json_t *make_unchecked(const struct execution *x)
{
	const char *reason = x->record ? member_text(x->record, "exit_reason") : "";
	json_t     *error  = x->record ? json_sprintf("The code could not be checked: the parser ended with %s", strcmp(reason, "exited") == 0 ? "no answer" : reason) :
					 json_sprintf("The code could not be checked: %s", x->failure.text);
	json_t     *errors = json_pack("[O]", error), *made;

	made = make(NULL, false, json_string_value(error), json_incref(error), errors, json_null());
	json_decref(error);
	return made;
}

json_t *findings_json(const struct execution *x)
{
	const json_t *said = x->program_report;
	json_t       *errors;
	bool          exited = said && strcmp(member_text(x->record, "exit_reason"), "exited") == 0;

	if (!exited)
		return make_unchecked(x);
	errors = errors_of(said);
	return make(said, json_is_true(json_object_get(said, "valid")) && !json_array_size(errors), member_text(said, "message"), error_of(said, errors), errors,
		    list_or_null(sentences(json_object_get(said, "warnings"))));
}

json_t *findings_short(const json_t *findings)
{
	return json_pack("{sO sO sO}", "valid", json_object_get(findings, "valid"), "errors", json_object_get(findings, "errors"), "message",
			 json_object_get(findings, "message"));
}

struct execution *findings_seek(struct call *c, const json_t *arguments, const json_t *explained, struct waiter *a, struct err *e)
{
	const json_t                  *code  = json_object_get(arguments, "code");
	const struct execution_request order = {
		.message   = run_request_check(c->mcp->settings, json_object_get(arguments, "allowed_imports"), explained),
		.code      = json_string_value(code),
		.code_len  = json_string_length(code),
		.principal = c->channel->principal,
	};
	struct execution *x = execution_start(c->mcp, &order, e);

	if (x)
		execution_add_waiter(x, a);
	return x;
}
