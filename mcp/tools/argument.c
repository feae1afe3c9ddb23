#include "argument.h"

#include "nearest.h"
#include "rpc.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Warnings about unknown arguments; more than these are not reported. */
#define UNKNOWN_MAX 8
#define TEXT_SHOWN  60

/* --- what was meant: a new reference, which is the value itself if that is not clear --- */

/* Models sometimes write a number as a text. The whole text must be the number. */
static bool number_of(const json_t *given, double *ret)
{
	const char *text = json_string_value(given);
	char       *end;

	if (json_is_number(given)) {
		*ret = json_number_value(given);
		return true;
	}
	if (!text || !*text || strspn(text, "0123456789.+-eE") != json_string_length(given))
		return false;
	*ret = strtod(text, &end);
	return !*end && *ret - *ret == 0; /* finite */
}

#define EXACT_MAX 9007199254740992.0 /* 2^53 */

static json_t *meant_count(const json_t *given)
{
	double value;

	if (json_is_integer(given) || !number_of(given, &value) || value > EXACT_MAX || value < -EXACT_MAX || value != (double)(int64_t)value)
		return json_incref((json_t *)given);
	return json_integer((int64_t)value);
}

static json_t *meant_milli(const json_t *given)
{
	double value;

	if (!number_of(given, &value) || value < 0 || value > 1e12)
		return json_incref((json_t *)given);
	return json_real((double)(uint64_t)(value * 1000 + 0.5) / 1000);
}

/* A size without a unit is in MiB, as a number and as a text: 128 is never meant as bytes. */
static json_t *meant_size(const json_t *given)
{
	const char *text = json_string_value(given);
	uint64_t    bytes;
	double      number;

	if (number_of(given, &number) && number > 0)
		return json_integer(number < (double)(1ull << 40) ? (json_int_t)(number * (double)MIB) : INT64_MAX);
	if (text && strlen(text) == json_string_length(given) && text_to_size(text, &bytes) == 0 && bytes <= INT64_MAX)
		return json_integer((json_int_t)bytes);
	return json_incref((json_t *)given);
}

static json_t *meant_bool(const json_t *given)
{
	const char *text = json_string_value(given);

	if (text && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0))
		return json_boolean(*text == 't');
	return json_incref((json_t *)given);
}

/* Models sometimes send a list or an object as a text with its JSON. It is bounded as a message is. */
static json_t *meant_many(const json_t *given)
{
	const char      *text  = json_string_value(given);
	struct rpc_error ignored;
	json_t          *found = text ? rpc_load(text, json_string_length(given), &ignored) : NULL;

	if (json_is_array(found) || json_is_object(found))
		return found;
	json_decref(found);
	return json_incref((json_t *)given);
}

static json_t *meant(enum field_type type, const json_t *given)
{
	switch (type) {
	case FIELD_COUNT:
		return meant_count(given);
	case FIELD_MILLI:
		return meant_milli(given);
	case FIELD_SIZE:
		return meant_size(given);
	case FIELD_BOOL:
		return meant_bool(given);
	case FIELD_WORDS:
	case FIELD_MAP:
	case FIELD_ROWS:
		return meant_many(given);
	default:
		return json_incref((json_t *)given);
	}
}

/* --- all of them --- */

static const struct argument *find_row(const struct argument *rows, const char *name)
{
	for (; rows->field.name; rows++)
		if (strcmp(rows->field.name, name) == 0)
			return rows;
	return NULL;
}

static void names_of(const struct argument *rows, char *ret, size_t len)
{
	size_t at = 0;

	ret[0] = 0;
	for (size_t i = 0; rows[i].field.name && at < len; i++)
		at += (size_t)snprintf(ret + at, len - at, "%s%s", i ? ", " : "", rows[i].field.name);
}

/* Arguments that other sandboxes have; a NULL ends each list of names. */
static const struct {
	const char *names[12];
	const char *advice;
} wishes[] = {
	{ { "session_id", "sessionid", "context", "context_id", "kernel", "kernel_id", "persist", "state", NULL }, "did you mean session?" },
	{ { "file", "file_path", "filename", "path", "upload", "uploads", "attachments", NULL }, "did you mean files?" },
	{ { "packages", "requirements", "dependencies", "pip", "pip_install", "install", "libraries", NULL }, "nothing can be installed by a call: get_sandbox_info lists what there is" },
	{ { "language", "lang", "runtime", "interpreter", NULL }, "programs are Python 3" },
	{ { "timeout_ms", "timeout_seconds", "time_limit", "max_time", NULL }, "did you mean timeout, in seconds?" },
	{ { "memory", "mem", "memory_mb", "memory_limit_mb", "max_memory", NULL }, "did you mean memory_limit?" },
	{ { "input", "input_data", "stdin_data", NULL }, "did you mean stdin?" },
};

static const char *advice_for(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(wishes); i++)
		for (size_t k = 0; wishes[i].names[k]; k++)
			if (nearest_distance(wishes[i].names[k], name) == 0)
				return wishes[i].advice;
	return NULL;
}

static const char *nearest_of(const struct argument *rows, const char *name)
{
	const char *found = NULL;
	unsigned    least = 3, d;

	for (; rows->field.name; rows++)
		if ((d = nearest_distance(rows->field.name, name)) < least) {
			least = d;
			found = rows->field.name;
		}
	return found;
}

/* The words after "was ignored". The advice is about programs, so only tools that run one (they have stdin) get it. */
static void print_advice(const struct argument *rows, const char *name, const char *names, char *ret, size_t len)
{
	const char *advice = find_row(rows, "stdin") ? advice_for(name) : NULL, *nearest = nearest_of(rows, name);

	if (advice)
		snprintf(ret, len, "%s", advice);
	else if (nearest)
		snprintf(ret, len, "did you mean %s?", nearest);
	else
		snprintf(ret, len, "there are: %s", *names ? names : "none");
}

static void warn_of_unknown(const struct argument *rows, const json_t *given, json_t *warnings)
{
	char        names[300], name[TEXT_SHOWN + 8], instead[320];
	const char *key;
	json_t     *value;
	size_t      n = 0;

	names_of(rows, names, sizeof names);
	json_object_foreach((json_t *)given, key, value) {
		if (find_row(rows, key) || n++ >= UNKNOWN_MAX)
			continue;
		snprintf(name, sizeof name, "%.*s", TEXT_SHOWN, key);
		text_make_plain(name);
		print_advice(rows, name, names, instead, sizeof instead);
		json_array_append_new(warnings, json_sprintf("The argument '%s' is unknown and was ignored; %s", name, instead));
	}
}

static bool has_nul(const json_t *text)
{
	return json_is_string(text) && strlen(json_string_value(text)) != json_string_length(text);
}

static json_t *take_one(const struct argument *row, const json_t *given, struct err *e)
{
	json_t *value = meant(row->field.type, given);

	if (field_check(&row->field, value, e) == 0)
		return value;
	if (has_nul(given))
		snprintf(e->text + strlen(e->text), sizeof e->text - strlen(e->text), "; in a Python text write \\x00 for it");
	json_decref(value);
	return NULL;
}

static json_t *take_if_given(const struct argument *row, const json_t *given, struct err *e)
{
	if (given && !json_is_null(given))
		return take_one(row, given, e);
	if (row->need != REQUIRED)
		return json_null();
	err_set(e, ERR_BAD_SPEC, "%s: missing; %s", row->field.name, row->manual ? row->manual : row->field.doc);
	return NULL;
}

json_t *arguments_take(const struct argument *rows, const json_t *given, json_t *warnings, struct err *e)
{
	json_t *taken = json_object(), *value;

	for (const struct argument *row = rows; row->field.name; row++) {
		if (!(value = take_if_given(row, json_object_get(given, row->field.name), e))) {
			json_decref(taken);
			return NULL;
		}
		json_object_set_new(taken, row->field.name, value);
	}
	if (warnings)
		warn_of_unknown(rows, given, warnings);
	return taken;
}

/* --- the schema: only what all clients understand --- */

/* The schema of an object in a list: names and types alone. */
static json_t *items_of(const struct field *table)
{
	json_t *properties = json_object();

	for (const struct field *f = table; f->name; f++) {
		json_t *schema = field_schema(f);

		json_object_del(schema, "description");
		json_object_set_new(properties, f->name, schema);
	}
	return json_pack("{ss so s[s]}", "type", "object", "properties", properties, "required", table->name);
}

static json_t *schema_of(const struct field *f)
{
	json_t *schema = field_schema(f);

	if (f->type == FIELD_ROWS)
		json_object_set_new(schema, "items", items_of(f->table));
	if (f->type == FIELD_SIZE)
		json_object_set_new(schema, "type", json_string("string")); /* a union with numbers is refused by some clients */
	if (!*f->doc)
		json_object_del(schema, "description");
	json_object_del(schema, "minimum"); /* a call out of bounds gets an error that says so; in the schema every model would have to read them */
	json_object_del(schema, "maximum");
	return schema;
}

json_t *arguments_schema(const struct argument *rows)
{
	json_t *properties = json_object(), *must = json_array(), *schema = json_pack("{ss}", "type", "object");

	for (const struct argument *row = rows; row && row->field.name; row++) {
		if (row->need == UNLISTED)
			continue;
		json_object_set_new(properties, row->field.name, schema_of(&row->field));
		if (row->need == REQUIRED)
			json_array_append_new(must, json_string(row->field.name));
	}
	if (json_object_size(properties))
		json_object_set(schema, "properties", properties);
	else
		json_object_set_new(schema, "additionalProperties", json_false());
	if (json_array_size(must))
		json_object_set(schema, "required", must);
	json_decref(properties);
	json_decref(must);
	return schema;
}
