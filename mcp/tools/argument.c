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
static bool parse_loose_number(const json_t *given, double *ret)
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

/* A size without a unit is in MiB, as a number and as a text: 128 is never meant as bytes. */
static json_t *mend_size(const json_t *given)
{
	const char *text = json_string_value(given);
	uint64_t    bytes;
	double      number;

	if (parse_loose_number(given, &number) && number > 0)
		return json_integer(number < (double)(1ull << 40) ? (json_int_t)(number * (double)MIB) : INT64_MAX);
	if (text && strlen(text) == json_string_length(given) && text_to_size(text, &bytes) == 0 && bytes <= INT64_MAX)
		return json_integer((json_int_t)bytes);
	return json_incref((json_t *)given);
}

/* Models sometimes send a list or an object as a text with its JSON. It is bounded as a message is. */
static json_t *mend_list_or_object(const json_t *given)
{
	const char      *text  = json_string_value(given);
	struct rpc_error ignored;
	json_t          *found = text ? rpc_load_json(text, json_string_length(given), &ignored) : NULL;

	if (json_is_array(found) || json_is_object(found))
		return found;
	json_decref(found);
	return json_incref((json_t *)given);
}

static json_t *mend_argument_value(enum field_type type, const json_t *given)
{
	const char *text = json_string_value(given);
	double      value;

	switch (type) {
	case FIELD_COUNT:
		if (json_is_integer(given) || !parse_loose_number(given, &value) || value > EXACT_MAX ||
		    value < -EXACT_MAX)
			break;
		if (value != (double)(int64_t)value)
			break;
		return json_integer((int64_t)value);
	case FIELD_MILLI:
		if (!parse_loose_number(given, &value) || value < 0 || value > 1e12)
			break;
		return json_real((double)(uint64_t)(value * 1000 + 0.5) / 1000);
	case FIELD_SIZE:
		return mend_size(given);
	case FIELD_BOOL:
		if (text && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0))
			return json_boolean(*text == 't');
		break;
	case FIELD_WORDS:
	case FIELD_MAP:
	case FIELD_ROWS:
		return mend_list_or_object(given);
	default:
		break;
	}
	return json_incref((json_t *)given);
}

/* --- all of them --- */

static const struct argument *find_argument_row(const struct argument *rows, const char *name)
{
	for (; rows->field.name; rows++)
		if (strcmp(rows->field.name, name) == 0)
			return rows;
	return NULL;
}

/* Arguments that other sandboxes have; a NULL ends each list of names. */
static const struct {
	const char *names[12];
	const char *advice;
} wishes[] = {
	{ { "session_id", "sessionid", "context", "context_id", "kernel", "kernel_id", "persist", "state", NULL },
	  "did you mean session?" },
	{ { "file", "file_path", "filename", "path", "upload", "uploads", "attachments", NULL },
	  "did you mean files?" },
	{ { "packages", "requirements", "dependencies", "pip", "pip_install", "install", "libraries", NULL },
	  "nothing can be installed by a call: get_sandbox_info lists what there is" },
	{ { "language", "lang", "runtime", "interpreter", NULL }, "programs are Python 3" },
	{ { "timeout_ms", "timeout_seconds", "time_limit", "max_time", NULL }, "did you mean timeout, in seconds?" },
	{ { "memory", "mem", "memory_mb", "memory_limit_mb", "max_memory", NULL }, "did you mean memory_limit?" },
	{ { "input", "input_data", "stdin_data", NULL }, "did you mean stdin?" },
};

/* The words after "was ignored". The advice is about programs, so only tools that run one (they have stdin) get it. */
static void print_unknown_argument_advice(const struct argument *rows, const char *name, char *ret, size_t len)
{
	const char *nearest = NULL;
	unsigned    least   = 3, distance;
	size_t      at;

	for (size_t i = 0; i < ARRAY_LEN(wishes) && find_argument_row(rows, "stdin"); i++)
		for (size_t k = 0; wishes[i].names[k]; k++)
			if (nearest_distance(wishes[i].names[k], name) == 0) {
				snprintf(ret, len, "%s", wishes[i].advice);
				return;
			}
	for (const struct argument *row = rows; row->field.name; row++)
		if ((distance = nearest_distance(row->field.name, name)) < least) {
			least   = distance;
			nearest = row->field.name;
		}
	if (nearest) {
		snprintf(ret, len, "did you mean %s?", nearest);
		return;
	}
	at = (size_t)snprintf(ret, len, "there are: %s", rows->field.name ? rows->field.name : "none");
	for (size_t i = 1; at < len && rows->field.name && rows[i].field.name; i++)
		at += (size_t)snprintf(ret + at, len - at, ", %s", rows[i].field.name);
}

static void warn_of_unknown_arguments(const struct argument *rows, const json_t *given, json_t *warnings)
{
	char        name[TEXT_SHOWN + 8], instead[320];
	const char *key;
	json_t     *value;
	size_t      n = 0;

	json_object_foreach((json_t *)given, key, value) {
		if (find_argument_row(rows, key) || n++ >= UNKNOWN_MAX)
			continue;
		snprintf(name, sizeof name, "%.*s", TEXT_SHOWN, key);
		text_make_plain(name);
		print_unknown_argument_advice(rows, name, instead, sizeof instead);
		json_array_append_new(warnings,
				      json_sprintf("The argument '%s' is unknown and was ignored; %s", name, instead));
	}
}

static json_t *parse_argument(const struct argument *row, const json_t *given, struct err *e)
{
	json_t *value;

	if (!given || json_is_null(given)) {
		if (row->need != REQUIRED)
			return json_null();
		err_set(e, ERR_BAD_SPEC, "%s: missing; %s", row->field.name,
			row->manual ? row->manual : row->field.doc);
		return NULL;
	}
	value = mend_argument_value(row->field.type, given);
	if (field_check(&row->field, value, e) == 0)
		return value;
	if (json_is_string(given) && strlen(json_string_value(given)) != json_string_length(given))
		snprintf(e->text + strlen(e->text), sizeof e->text - strlen(e->text),
			 "; in a Python text write \\x00 for it");
	json_decref(value);
	return NULL;
}

json_t *arguments_parse(const struct argument *rows, const json_t *given, json_t *warnings, struct err *e)
{
	json_t *taken = json_object(), *value;

	for (const struct argument *row = rows; row->field.name; row++) {
		if (!(value = parse_argument(row, json_object_get(given, row->field.name), e))) {
			json_decref(taken);
			return NULL;
		}
		json_object_set_new(taken, row->field.name, value);
	}
	if (warnings)
		warn_of_unknown_arguments(rows, given, warnings);
	return taken;
}

/* --- the schema: only what all clients understand --- */

/* The schema of an object in a list: names and types alone. */
static json_t *table_item_schema(const struct field *table)
{
	json_t *properties = json_object();

	for (const struct field *f = table; f->name; f++) {
		json_t *schema = field_schema(f);

		json_object_del(schema, "description");
		json_object_set_new(properties, f->name, schema);
	}
	return json_pack("{ss so s[s]}", "type", "object", "properties", properties, "required", table->name);
}

static json_t *argument_schema(const struct field *f)
{
	json_t *schema = field_schema(f);

	if (f->type == FIELD_ROWS)
		json_object_set_new(schema, "items", table_item_schema(f->table));
	if (f->type == FIELD_SIZE)
		/* a union with numbers is refused by some clients */
		json_object_set_new(schema, "type", json_string("string"));
	if (!*f->doc)
		json_object_del(schema, "description");
	/* a call out of bounds gets an error; in the schema every model would have to read them */
	json_object_del(schema, "minimum");
	json_object_del(schema, "maximum");
	return schema;
}

json_t *arguments_schema(const struct argument *rows)
{
	json_t *properties = json_object(), *must = json_array(), *schema = json_pack("{ss}", "type", "object");

	for (const struct argument *row = rows; row && row->field.name; row++) {
		if (row->need == UNLISTED)
			continue;
		json_object_set_new(properties, row->field.name, argument_schema(&row->field));
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
