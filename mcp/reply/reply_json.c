/* reply_json.c - the object that clients of all three published servers can read */
#include "reply.h"

#include "clean.h"
#include "excerpt.h"
#include "refused_summary.h"

#include <stdlib.h>
#include <string.h>

static const json_t *recorded(const struct outcome *o, const char *key)
{
	const json_t *value = json_object_get(o->record, key);

	return value ? value : json_null();
}

static json_t *copy_of(const struct outcome *o, const char *key)
{
	return json_incref((json_t *)recorded(o, key));
}

static json_t *text_or_null(const char *text)
{
	return *text ? json_string(text) : json_null();
}

/* A text of the program, without terminal escapes. A value that is not a text is not changed. */
static json_t *prose(const json_t *value)
{
	size_t  len;
	char   *text;
	json_t *made;

	if (!json_is_string(value))
		return json_incref((json_t *)value);
	text = clean_text(json_string_value(value), json_string_length(value), false, &len);
	made = text ? json_stringn(text, len) : json_null();
	free(text);
	return made;
}

/* A key of the program's exception. If the tool has failed it is null, as the error of the record is brig's. */
static json_t *raised(const struct outcome *o, const char *key)
{
	const json_t *value = o->is_failure ? NULL : json_object_get(recorded(o, "error"), key);

	return value ? prose(value) : json_null();
}

static double figure(const struct outcome *o, const char *key)
{
	return json_number_value(recorded(o, key));
}

/* --- one function a key; those that are the record's own need none --- */

static json_t *success(const struct outcome *o)
{
	return json_boolean(strcmp(o->exit_reason, "exited") == 0 && !*o->error);
}

static json_t *execution_id(const struct outcome *o)
{
	return text_or_null(o->execution_id);
}

static json_t *result(const struct outcome *o)
{
	return o->result ? json_incref(o->result) : json_null();
}

static json_t *whole_stream(const struct outcome_stream *s)
{
	size_t fits = s->text ? clean_fit(s->text, s->len, 3 * MIB) : 0;

	return json_stringn(s->text ? s->text : "", fits);
}

/* Its beginning and its end. */
static struct excerpt excerpt_of(const struct outcome_stream *s, size_t len)
{
	return (struct excerpt){ s->text ? s->text : "", len, s->tail, s->tail_len, s->bytes, *s->file ? s->file : NULL };
}

static json_t *brief_stream(const struct outcome_stream *s, size_t len)
{
	struct excerpt all  = excerpt_of(s, len);
	char          *text = NULL;
	size_t         n    = 0;
	FILE          *out  = open_memstream(&text, &n);
	json_t        *made;

	if (!out)
		return json_null();
	excerpt_print(out, &all, BRIEF_OUTPUT);
	fclose(out);
	made = json_stringn(text, n);
	free(text);
	return made;
}

static json_t *stdout_json(const struct outcome *o)
{
	return whole_stream(&o->out);
}

static json_t *stderr_json(const struct outcome *o)
{
	return whole_stream(&o->err);
}

static json_t *brief_stdout(const struct outcome *o)
{
	return brief_stream(&o->out, o->out.len);
}

/* Without the traceback at its end, which has a key of its own. */
static json_t *brief_stderr(const struct outcome *o)
{
	return brief_stream(&o->err, o->err.len - o->traceback_len);
}

static json_t *execution_time(const struct outcome *o)
{
	const json_t *wall = recorded(o, "wall_ms");

	if (o->seconds >= 0)
		return json_real(o->seconds);
	return json_real(json_is_number(wall) ? (double)(long long)(json_number_value(wall) * 1000 + 0.5) / 1e6 : 0);
}

static json_t *variables(const struct outcome *o)
{
	const json_t *names = recorded(o, "variables");

	return json_is_array(names) ? json_incref((json_t *)names) : json_array();
}

static json_t *error(const struct outcome *o)
{
	return text_or_null(o->error);
}

static json_t *error_type(const struct outcome *o)
{
	return raised(o, "type");
}

static json_t *traceback(const struct outcome *o)
{
	return raised(o, "traceback");
}

static json_t *brief_traceback(const struct outcome *o)
{
	return o->traceback ? json_string(o->traceback) : json_null();
}

static json_t *line(const struct outcome *o)
{
	return raised(o, "line");
}

static json_t *offset(const struct outcome *o)
{
	return raised(o, "offset");
}

static json_t *text(const struct outcome *o)
{
	return raised(o, "text");
}

static json_t *hint(const struct outcome *o)
{
	return text_or_null(o->hint);
}

static json_t *exit_reason(const struct outcome *o)
{
	return json_string(o->exit_reason);
}

static json_t *return_code(const struct outcome *o)
{
	return copy_of(o, "exit_code");
}

static json_t *timeout(const struct outcome *o)
{
	if (!o->timeout_ms)
		return json_null();
	return o->timeout_ms % 1000 ? json_real((double)o->timeout_ms / 1000) : json_integer((json_int_t)(o->timeout_ms / 1000));
}

static json_t *list_or_empty(const struct outcome *o, const char *key)
{
	const json_t *list = recorded(o, key);

	return json_is_array(list) ? json_incref((json_t *)list) : json_array();
}

static json_t *limits_hit(const struct outcome *o)
{
	return list_or_empty(o, "limits_hit");
}

static json_t *refused(const struct outcome *o)
{
	return list_or_empty(o, "refused");
}

static json_t *brief_refused(const struct outcome *o)
{
	const json_t *list = recorded(o, "refused");
	json_t       *made = json_array();
	char          words[REFUSED_SUMMARY_MAX];

	for (size_t i = 0; i < json_array_size(list) && i < BRIEF_REFUSED; i++)
		json_array_append_new(made, json_string(refused_call_summary(json_array_get(list, i), words, sizeof words)));
	return made;
}

static json_t *isolation(const struct outcome *o)
{
	return list_or_empty(o, "isolation");
}

static const char *const brief_figures[] = { "wall_ms", "cpu_ms", "mem_peak_mb" };

static json_t *usage(const struct outcome *o)
{
	json_t *peak = json_null();

	if (!o->record)
		return json_null();
	if (json_is_integer(recorded(o, "memory_peak_bytes")))
		peak = json_real((double)(long long)(figure(o, "memory_peak_bytes") / (double)MIB * 1000 + 0.5) / 1000);
	return json_pack("{so so so so s{so so} so so so so}", "wall_ms", copy_of(o, "wall_ms"), "cpu_ms", copy_of(o, "cpu_ms"), "mem_peak_mb", peak,
			 "pids_peak", copy_of(o, "pids_peak"), "io", "read_bytes", copy_of(o, "io_read_bytes"), "write_bytes", copy_of(o, "io_write_bytes"),
			 "setup_ms", copy_of(o, "setup_ms"), "warm", copy_of(o, "warm"), "stdout_bytes", copy_of(o, "stdout_bytes"), "stderr_bytes",
			 copy_of(o, "stderr_bytes"));
}

static json_t *brief_usage(const struct outcome *o)
{
	json_t *all = usage(o), *made = json_object();

	for (size_t i = 0; i < ARRAY_LEN(brief_figures); i++)
		json_object_set(made, brief_figures[i], json_object_get(all, brief_figures[i]));
	json_decref(all);
	return made;
}

static json_t *truncated(const struct outcome *o)
{
	return json_boolean(o->out.is_cut || o->err.is_cut || json_is_true(recorded(o, "truncated")));
}

static json_t *brief_truncated(const struct outcome *o)
{
	struct excerpt out = excerpt_of(&o->out, o->out.len), err = excerpt_of(&o->err, o->err.len - o->traceback_len);

	return excerpt_wants(&out) > BRIEF_OUTPUT || excerpt_wants(&err) > BRIEF_OUTPUT ? json_true() : truncated(o);
}

/* Nothing to warn of is null: clients of the second generation test for truth. */
static json_t *security_warnings(const struct outcome *o)
{
	const json_t *list = recorded(o, "security_warnings");
	json_t       *made = json_array_size(list) ? json_array() : json_null();

	for (size_t i = 0; i < json_array_size(list); i++)
		json_array_append_new(made, prose(json_array_get(list, i)));
	return made;
}

static json_t *validation_errors(const struct outcome *o)
{
	return o->findings ? json_incref(json_object_get(o->findings, "errors")) : json_null();
}

static json_t *details(const struct outcome *o)
{
	return o->findings ? json_incref(o->findings) : json_null();
}

static json_t *warnings(const struct outcome *o)
{
	return json_array_size(o->warnings) ? json_incref(o->warnings) : json_null();
}

/* null if the program has called no tools. */
static json_t *tool_calls(const struct outcome *o)
{
	const json_t *all = recorded(o, "tool_calls");

	return json_integer_value(json_object_get(all, "n")) ? json_incref((json_t *)all) : json_null();
}

static const char *const brief_calls[] = { "n", "failed", "denied", "names" };

static json_t *brief_tool_calls(const struct outcome *o)
{
	json_t *all = tool_calls(o), *made = json_object();

	for (size_t i = 0; i < ARRAY_LEN(brief_calls) && json_is_object(all); i++)
		json_object_set(made, brief_calls[i], json_object_get(all, brief_calls[i]));
	json_decref(all);
	return made;
}

/* All texts together have at most max bytes, as `cut` counts them. */
static json_t *displays_within(const struct outcome *o, size_t (*cut)(const char *text, size_t len, size_t max), size_t max)
{
	json_t *made = json_array();

	for (size_t i = 0; i < json_array_size(o->displays); i++) {
		const json_t *one  = json_array_get(o->displays, i);
		const char   *text = json_string_value(one);
		size_t        len  = json_string_length(one), fits = cut(text, len, max);

		max -= fits < max ? fits : max;
		json_array_append_new(made, fits == len ? json_incref((json_t *)one) : json_sprintf("%.*s [... %zu bytes in all ...]", (int)fits, text, len));
	}
	return made;
}

static json_t *displays(const struct outcome *o)
{
	return displays_within(o, clean_fit, MIB / 2);
}

static json_t *brief_displays(const struct outcome *o)
{
	return displays_within(o, clean_cut, BRIEF_OUTPUT);
}

static json_t *written(const struct outcome *o)
{
	return text_or_null(o->written);
}

static json_t *session(const struct outcome *o)
{
	if (!*o->session)
		return json_null();
	return json_pack("{ss ss* ss*}", "name", o->session, "state", *o->session_state ? o->session_state : NULL, "note", *o->session_note ? o->session_note : NULL);
}

static json_t *profile(const struct outcome *o)
{
	return text_or_null(o->profile);
}

/* null, false, an empty list or object: a key of brig's own is left out then. */
static bool says_nothing(const json_t *value)
{
	return json_is_null(value) || json_is_false(value) || (json_is_array(value) && !json_array_size(value)) || (json_is_object(value) && !json_object_size(value));
}

enum when { ALWAYS, IF_PRESENT, IN_DETAIL };

/* clang-format off */
static const struct {
	const char *key;
	enum when   when; /* ALWAYS: a published server has it. IF_PRESENT: if it says something, or with detail. IN_DETAIL: with detail */
	json_t   *(*make)(const struct outcome *o);  /* NULL: the record's value of the key, or null */
	json_t   *(*brief)(const struct outcome *o); /* without detail; NULL: the same */
} rows[] = { /* how it ended comes first: of a long reply the rest may not be read */
	{ "success",           ALWAYS,    success,           NULL },
	{ "error",             ALWAYS,    error,             NULL },
	{ "hint",              IF_PRESENT, hint,             NULL },
	{ "exit_reason",       ALWAYS,    exit_reason,       NULL },
	{ "exit_code",         IF_PRESENT, NULL,             NULL },
	{ "signal",            IF_PRESENT, NULL,             NULL },
	{ "session",           IF_PRESENT, session,          NULL },
	{ "limits_hit",        IF_PRESENT, limits_hit,       NULL },
	{ "refused",           IF_PRESENT, refused,          brief_refused },
	{ "truncated",         IF_PRESENT, truncated,        brief_truncated },
	{ "execution_id",      ALWAYS,    execution_id,      NULL },
	{ "result",            ALWAYS,    result,            NULL },
	{ "stdout",            ALWAYS,    stdout_json,       brief_stdout },
	{ "stderr",            ALWAYS,    stderr_json,       brief_stderr },
	{ "displays",          IF_PRESENT, displays,         brief_displays },
	{ "written",           IF_PRESENT, written,          NULL },
	{ "execution_time",    ALWAYS,    execution_time,    NULL },
	{ "variables",         ALWAYS,    variables,         NULL },
	{ "error_type",        IF_PRESENT, error_type,       NULL },
	{ "traceback",         ALWAYS,    traceback,         brief_traceback },
	{ "line",              IF_PRESENT, line,             NULL },
	{ "offset",            IF_PRESENT, offset,           NULL },
	{ "text",              IF_PRESENT, text,             NULL },
	{ "return_code",       ALWAYS,    return_code,       NULL },
	{ "timeout",           ALWAYS,    timeout,           NULL },
	{ "usage",             IF_PRESENT, usage,            brief_usage },
	{ "tool_calls",        IF_PRESENT, tool_calls,       brief_tool_calls },
	{ "files",             IF_PRESENT, NULL,             NULL },
	{ "security_warnings", ALWAYS,    security_warnings, NULL },
	{ "security_event",    ALWAYS,    NULL,              NULL },
	{ "validation_errors", ALWAYS,    validation_errors, NULL },
	{ "details",           IF_PRESENT, details,          NULL },
	{ "warnings",          IF_PRESENT, warnings,         NULL },
	{ "profile",           IF_PRESENT, profile,          NULL },
	{ "rootfs",            IN_DETAIL, NULL,              NULL },
	{ "isolation",         IN_DETAIL, isolation,         NULL },
};
/* clang-format on */

static json_t *value_of(const struct outcome *o, size_t i, bool detail)
{
	if (!detail && rows[i].brief)
		return rows[i].brief(o);
	return rows[i].make ? rows[i].make(o) : copy_of(o, rows[i].key);
}

static void put(json_t *object, const struct outcome *o, size_t i, bool detail)
{
	json_t *value = value_of(o, i, detail);

	if (rows[i].when == ALWAYS || detail || (rows[i].when == IF_PRESENT && !says_nothing(value)))
		json_object_set(object, rows[i].key, value);
	json_decref(value);
}

/* Appends repr() of the result to stdout, as the published server did; so a text has its quotes. */
static void echo_result(json_t *object, const struct outcome *o)
{
	const json_t *repr = recorded(o, "result_repr"), *out = json_object_get(object, "stdout");
	size_t        len;
	char         *plain = json_is_string(repr) ? clean_text(json_string_value(repr), json_string_length(repr), false, &len) : NULL;

	if (plain)
		json_object_set_new(object, "stdout", json_sprintf("%s%s\n", json_string_value(out), plain));
	free(plain);
}

json_t *reply_json(const struct outcome *o, const struct answer_form *answer_form)
{
	json_t *object = json_object();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		put(object, o, i, answer_form->detail);
	if (answer_form->echo)
		echo_result(object, o);
	return object;
}
