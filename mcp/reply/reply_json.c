/* reply_json.c - the object that clients of all three published servers can read */
#include "reply.h"

#include "capabilities.h"
#include "clean.h"
#include "refused_summary.h"

#include <stdlib.h>
#include <string.h>

static const json_t *record_member(const struct outcome *o, const char *key)
{
	const json_t *value = json_object_get(o->record, key);

	return value ? value : json_null();
}

static json_t *copy_record_member(const struct outcome *o, const char *key)
{
	return json_incref((json_t *)record_member(o, key));
}

/* A text of the program, without terminal escapes. A value that is not a text is not changed. */
static json_t *clean_program_text(const json_t *value)
{
	json_t *text;

	if (!json_is_string(value))
		return json_incref((json_t *)value);
	text = clean_text_to_json(json_string_value(value), json_string_length(value));
	return text ? text : json_null();
}

/* --- keys that are neither of the record nor of the outcome as they are --- */

static json_t *success_to_json(const struct outcome *o)
{
	return json_boolean(strcmp(o->exit_reason, "exited") == 0 && !*o->error);
}

static json_t *brief_stream_to_json(const struct outcome_stream *s, size_t len)
{
	struct excerpt all  = outcome_stream_excerpt(s, len);
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

static json_t *stream_to_json(const struct outcome_stream *s)
{
	size_t fits = s->text ? clean_fit_escaped(s->text, s->len, 3 * MIB) : 0;

	return json_stringn(s->text ? s->text : "", fits);
}

static json_t *execution_time_to_json(const struct outcome *o)
{
	const json_t *wall = record_member(o, "wall_ms");

	if (o->seconds >= 0)
		return json_real(o->seconds);
	return json_real(json_is_number(wall) ? (double)(long long)(json_number_value(wall) * 1000 + 0.5) / 1e6 : 0);
}

static json_t *brief_traceback_to_json(const struct outcome *o)
{
	return o->traceback ? json_string(o->traceback) : json_null();
}

static json_t *timeout_to_json(const struct outcome *o)
{
	return o->timeout_ms ? capabilities_seconds_json(o->timeout_ms) : json_null();
}

static json_t *brief_refused_calls_to_json(const struct outcome *o)
{
	const json_t *list = record_member(o, "refused");
	json_t       *made = json_array();
	char          words[REFUSED_SUMMARY_MAX];

	for (size_t i = 0; i < json_array_size(list) && i < BRIEF_REFUSED; i++)
		json_array_append_new(made,
				      json_string(refused_call_print_summary(json_array_get(list, i), words,
									  sizeof words)));
	return made;
}

/* Takes all over. */
static json_t *keep_only_keys(json_t *all, const char *const *keys, size_t n)
{
	json_t *made = json_object();

	for (size_t i = 0; i < n && json_is_object(all); i++)
		json_object_set(made, keys[i], json_object_get(all, keys[i]));
	json_decref(all);
	return made;
}

static json_t *usage_to_json(const struct outcome *o)
{
	json_t *peak = json_null();

	if (!o->record)
		return json_null();
	if (json_is_integer(record_member(o, "memory_peak_bytes")))
		peak = json_real((double)(long long)(json_number_value(record_member(o, "memory_peak_bytes")) /
							     (double)MIB * 1000 +
						     0.5) /
				 1000);
	return json_pack("{so so so so s{so so} so so so so}", "wall_ms", copy_record_member(o, "wall_ms"), "cpu_ms",
			 copy_record_member(o, "cpu_ms"), "mem_peak_mb", peak, "pids_peak",
			 copy_record_member(o, "pids_peak"), "io", "read_bytes", copy_record_member(o, "io_read_bytes"),
			 "write_bytes", copy_record_member(o, "io_write_bytes"), "setup_ms",
			 copy_record_member(o, "setup_ms"), "warm", copy_record_member(o, "warm"), "stdout_bytes",
			 copy_record_member(o, "stdout_bytes"), "stderr_bytes", copy_record_member(o, "stderr_bytes"));
}

static json_t *brief_usage_to_json(const struct outcome *o)
{
	static const char *const keys[] = { "wall_ms", "cpu_ms", "mem_peak_mb" };

	return keep_only_keys(usage_to_json(o), keys, ARRAY_LEN(keys));
}

static json_t *truncated_to_json(const struct outcome *o)
{
	return json_boolean(o->out.is_cut || o->err.is_cut || json_is_true(record_member(o, "truncated")));
}

static json_t *brief_truncated_to_json(const struct outcome *o)
{
	struct excerpt out = outcome_stream_excerpt(&o->out, o->out.len),
		       err = outcome_stream_excerpt(&o->err, o->err.len - o->traceback_len);

	return excerpt_full_cost(&out) > BRIEF_OUTPUT || excerpt_full_cost(&err) > BRIEF_OUTPUT ? json_true()
												: truncated_to_json(o);
}

/* Nothing to warn of is null: clients of the second generation test for truth. */
static json_t *security_warnings_to_json(const struct outcome *o)
{
	const json_t *list = record_member(o, "security_warnings");
	json_t       *made = json_array_size(list) ? json_array() : json_null();

	for (size_t i = 0; i < json_array_size(list); i++)
		json_array_append_new(made, clean_program_text(json_array_get(list, i)));
	return made;
}

static json_t *validation_errors_to_json(const struct outcome *o)
{
	return o->findings ? json_incref(json_object_get(o->findings, "errors")) : json_null();
}

/* null if the program has called no tools. */
static json_t *tool_calls_to_json(const struct outcome *o)
{
	const json_t *all = record_member(o, "tool_calls");

	return json_integer_value(json_object_get(all, "n")) ? json_incref((json_t *)all) : json_null();
}

static json_t *brief_tool_calls_to_json(const struct outcome *o)
{
	static const char *const keys[] = { "n", "failed", "denied", "names" };

	return keep_only_keys(tool_calls_to_json(o), keys, ARRAY_LEN(keys));
}

/* All texts together have at most max bytes, as `cut` counts them. */
static json_t *displays_to_json_within(const struct outcome *o, size_t (*cut)(const char *text, size_t len, size_t max),
			       size_t                max)
{
	json_t *made = json_array();

	for (size_t i = 0; i < json_array_size(o->displays); i++) {
		const json_t *one  = json_array_get(o->displays, i);
		const char   *text = json_string_value(one);
		size_t        len  = json_string_length(one), fits = cut(text, len, max);

		max -= fits < max ? fits : max;
		json_array_append_new(
			made, fits == len ? json_incref((json_t *)one)
					  : json_sprintf("%.*s [... %zu bytes in all ...]", (int)fits, text, len));
	}
	return made;
}

static json_t *displays_to_json(const struct outcome *o)
{
	return displays_to_json_within(o, clean_fit_escaped, MIB / 2);
}

static json_t *brief_displays_to_json(const struct outcome *o)
{
	return displays_to_json_within(o, clean_cut_length, BRIEF_OUTPUT);
}

static json_t *session_to_json(const struct outcome *o)
{
	if (!*o->session)
		return json_null();
	return json_pack("{ss ss* ss*}", "name", o->session, "state", *o->session_state ? o->session_state : NULL,
			 "note", *o->session_note ? o->session_note : NULL);
}

enum when { ALWAYS, IF_PRESENT, IN_DETAIL };

/* Where the value of a key comes from. */
enum source {
	RECORD, /* the record, else null */
	LIST,   /* a list of the record, else an empty one */
	RAISED, /* the exception of the program; null if the tool has failed: then the record has brig's own error */
	TEXT,   /* a text of the outcome at `offset`; null if it is empty */
	JSON,   /* a value of the outcome at `offset`, or null */
	STREAM, /* output of the program at `offset`; cut in its middle without detail */
	MADE,   /* a function */
};

#define AT(member) offsetof(struct outcome, member)

/* clang-format off */
static const struct row {
	const char *key;
	/*
	 * ALWAYS: a published server has it. IF_PRESENT: if it has a value, or with detail. IN_DETAIL: with detail
	 */
	enum when   when;
	enum source source;
	const char *name; /* RECORD, LIST, RAISED: the key there */
	size_t      offset;
	json_t   *(*make)(const struct outcome *o);
	json_t   *(*brief)(const struct outcome *o); /* without detail; NULL: the same */
} rows[] = { /* how it ended comes first: of a long reply the rest may not be read */
	{ "success",           ALWAYS,     MADE,   .make = success_to_json },
	{ "error",             ALWAYS,     TEXT,   .offset = AT(error) },
	{ "hint",              IF_PRESENT, TEXT,   .offset = AT(hint) },
	{ "exit_reason",       ALWAYS,     TEXT,   .offset = AT(exit_reason) },
	{ "exit_code",         IF_PRESENT, RECORD, "exit_code" },
	{ "signal",            IF_PRESENT, RECORD, "signal" },
	{ "session",           IF_PRESENT, MADE,   .make = session_to_json },
	{ "limits_hit",        IF_PRESENT, LIST,   "limits_hit" },
	{ "refused",           IF_PRESENT, LIST,   "refused", .brief = brief_refused_calls_to_json },
	{ "truncated",         IF_PRESENT, MADE,   .make = truncated_to_json, .brief = brief_truncated_to_json },
	{ "execution_id",      ALWAYS,     TEXT,   .offset = AT(execution_id) },
	{ "result",            ALWAYS,     JSON,   .offset = AT(result) },
	{ "stdout",            ALWAYS,     STREAM, .offset = AT(out) },
	{ "stderr",            ALWAYS,     STREAM, .offset = AT(err) }, /* brief: without its traceback */
	{ "displays",          IF_PRESENT, MADE,   .make = displays_to_json, .brief = brief_displays_to_json },
	{ "written",           IF_PRESENT, TEXT,   .offset = AT(written) },
	{ "execution_time",    ALWAYS,     MADE,   .make = execution_time_to_json },
	{ "variables",         ALWAYS,     LIST,   "variables" },
	{ "error_type",        IF_PRESENT, RAISED, "type" },
	{ "traceback",         ALWAYS,     RAISED, "traceback", .brief = brief_traceback_to_json },
	{ "line",              IF_PRESENT, RAISED, "line" },
	{ "offset",            IF_PRESENT, RAISED, "offset" },
	{ "text",              IF_PRESENT, RAISED, "text" },
	{ "return_code",       ALWAYS,     RECORD, "exit_code" },
	{ "timeout",           ALWAYS,     MADE,   .make = timeout_to_json },
	{ "usage",             IF_PRESENT, MADE,   .make = usage_to_json, .brief = brief_usage_to_json },
	{ "tool_calls",        IF_PRESENT, MADE,   .make = tool_calls_to_json, .brief = brief_tool_calls_to_json },
	{ "files",             IF_PRESENT, RECORD, "files" },
	{ "security_warnings", ALWAYS,     MADE,   .make = security_warnings_to_json },
	{ "security_event",    ALWAYS,     RECORD, "security_event" },
	{ "validation_errors", ALWAYS,     MADE,   .make = validation_errors_to_json },
	{ "details",           IF_PRESENT, JSON,   .offset = AT(findings) },
	{ "warnings",          IF_PRESENT, JSON,   .offset = AT(warnings) },
	{ "profile",           IF_PRESENT, TEXT,   .offset = AT(profile) },
	{ "rootfs",            IN_DETAIL,  RECORD, "rootfs" },
	{ "isolation",         IN_DETAIL,  LIST,   "isolation" },
};
/* clang-format on */

static json_t *reply_row_value(const struct row *row, const struct outcome *o, bool detail)
{
	const void   *member = (const char *)o + row->offset;
	const json_t *value  = NULL;

	if (!detail && row->brief)
		return row->brief(o);
	switch (row->source) {
	case RECORD:
		return copy_record_member(o, row->name);
	case LIST:
		value = record_member(o, row->name);
		return json_is_array(value) ? json_incref((json_t *)value) : json_array();
	case RAISED:
		value = o->is_failure ? NULL : json_object_get(record_member(o, "error"), row->name);
		return value ? clean_program_text(value) : json_null();
	case TEXT:
		return *(const char *)member ? json_string(member) : json_null();
	case JSON:
		value = *(json_t *const *)member;
		return value ? json_incref((json_t *)value) : json_null();
	case STREAM:
		if (detail)
			return stream_to_json(member);
		return brief_stream_to_json(member,
					    row->offset == AT(err) ? o->err.len - o->traceback_len : o->out.len);
	case MADE:
		return row->make(o);
	}
	return json_null();
}

/* null, false, an empty list or object: a key of brig's own is left out then. */
static bool is_empty_json(const json_t *value)
{
	return json_is_null(value) || json_is_false(value) || (json_is_array(value) && !json_array_size(value)) ||
	       (json_is_object(value) && !json_object_size(value));
}

json_t *reply_json(const struct outcome *o, const struct answer_form *answer_form)
{
	json_t       *object = json_object();
	const json_t *repr   = record_member(o, "result_repr");
	size_t        len;
	char         *plain;

	for (const struct row *row = rows; row < rows + ARRAY_LEN(rows); row++) {
		json_t *value = reply_row_value(row, o, answer_form->detail);

		if (row->when == ALWAYS || answer_form->detail || (row->when == IF_PRESENT && !is_empty_json(value)))
			json_object_set(object, row->key, value);
		json_decref(value);
	}
	if (!answer_form->echo || !json_is_string(repr))
		return object;
	/* repr() of the result goes to stdout, as the published server did; so a text has its quotes */
	plain = clean_text(json_string_value(repr), json_string_length(repr), false, &len);
	if (plain)
		json_object_set_new(
			object, "stdout",
			json_sprintf("%s%s\n", json_string_value(json_object_get(object, "stdout")), plain));
	free(plain);
	return object;
}
