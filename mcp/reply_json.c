/* reply_json.c - the object that clients of all three published servers can read */
#include "reply.h"

#include "clean.h"

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

/* Prose of the program's: without what it would do to a terminal. Results are data, and stay what they are. */
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

/* Of the exception: a key of the record's error. An error of ours is none of the program's. */
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

static json_t *stream_json(const struct outcome_stream *s)
{
	size_t fits = s->text ? clean_fit(s->text, s->len, 3 * MIB) : 0;

	return json_stringn(s->text ? s->text : "", fits);
}

static json_t *stdout_json(const struct outcome *o)
{
	return stream_json(&o->out);
}

static json_t *stderr_json(const struct outcome *o)
{
	return stream_json(&o->err);
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

static json_t *isolation(const struct outcome *o)
{
	return list_or_empty(o, "isolation");
}

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

static json_t *truncated(const struct outcome *o)
{
	return json_boolean(o->out.is_cut || o->err.is_cut || json_is_true(recorded(o, "truncated")));
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

static json_t *profile(const struct outcome *o)
{
	return text_or_null(o->profile);
}

/* clang-format off */
static const struct {
	const char *key;
	json_t   *(*make)(const struct outcome *o); /* NULL: the record's own, or null */
} rows[] = {
	{ "success",           success },
	{ "execution_id",      execution_id },
	{ "result",            result },
	{ "stdout",            stdout_json },
	{ "stderr",            stderr_json },
	{ "execution_time",    execution_time },
	{ "variables",         variables },
	{ "error",             error },
	{ "error_type",        error_type },
	{ "traceback",         traceback },
	{ "line",              line },
	{ "offset",            offset },
	{ "text",              text },
	{ "hint",              hint },
	{ "exit_reason",       exit_reason },
	{ "exit_code",         NULL },
	{ "return_code",       return_code },
	{ "signal",            NULL },
	{ "timeout",           timeout },
	{ "limits_hit",        limits_hit },
	{ "usage",             usage },
	{ "truncated",         truncated },
	{ "files",             NULL },
	{ "security_warnings", security_warnings },
	{ "security_event",    NULL },
	{ "validation_errors", validation_errors },
	{ "details",           details },
	{ "warnings",          warnings },
	{ "profile",           profile },
	{ "rootfs",            NULL },
	{ "isolation",         isolation },
};
/* clang-format on */

/* As the published server did; a text without its quotes is not what Python would print. */
static void echo_result(json_t *object, const struct outcome *o)
{
	const json_t *repr = recorded(o, "result_repr"), *out = json_object_get(object, "stdout");
	size_t        len;
	char         *plain = json_is_string(repr) ? clean_text(json_string_value(repr), json_string_length(repr), false, &len) : NULL;

	if (plain)
		json_object_set_new(object, "stdout", json_sprintf("%s%s\n", json_string_value(out), plain));
	free(plain);
}

json_t *reply_json(const struct outcome *o, bool echo)
{
	json_t *object = json_object();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		json_object_set_new(object, rows[i].key, rows[i].make ? rows[i].make(o) : copy_of(o, rows[i].key));
	if (echo)
		echo_result(object, o);
	return object;
}
