#include "argument.h"

#include "nearest.h"
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Warnings about arguments that nobody knows; of more the rest is silent. */
#define UNKNOWN_MAX 8
#define TEXT_SHOWN  60

/* --- what is said about a value --- */

/* A number as people write it: 300, 0.01. */
static const char *number_text(double value, char *buf, size_t len)
{
	snprintf(buf, len, "%.15g", value);
	return buf;
}

/* What came, short and plain. */
static const char *shown(const json_t *value, char *buf, size_t len)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

	snprintf(buf, len, "%.*s%s", TEXT_SHOWN, text ? text : "?", text && strlen(text) > TEXT_SHOWN ? "..." : "");
	text_make_plain(buf);
	free(text);
	return buf;
}

static int expected(struct err *e, const struct argument *row, const json_t *given, const char *what)
{
	char buf[TEXT_SHOWN + 8];

	return err_set(e, ERR_BAD_SPEC, "%s: expected %s, not %s", row->name, what, shown(given, buf, sizeof buf));
}

static bool is_bounded(const struct argument *row)
{
	return row->max > 0;
}

static int check_length(const struct argument *row, size_t n, const char *what, struct err *e)
{
	if (is_bounded(row) && (double)n > row->max)
		return err_set(e, ERR_BAD_SPEC, "%s: %zu %s are too many; the most is %.0f", row->name, n, what, row->max);
	if ((double)n < row->min)
		return err_set(e, ERR_BAD_SPEC, "%s: %zu %s are too few; the least is %.0f", row->name, n, what, row->min);
	return 0;
}

static int check_range(const struct argument *row, double value, struct err *e)
{
	char is[32], least[32], most[32];

	number_text(value, is, sizeof is);
	number_text(row->min, least, sizeof least);
	number_text(row->max, most, sizeof most);
	if (is_bounded(row) && (value < row->min || value > row->max))
		return err_set(e, ERR_BAD_SPEC, "%s: %s is outside %s..%s", row->name, is, least, most);
	if (value < row->min)
		return err_set(e, ERR_BAD_SPEC, "%s: %s is too little; the least is %s", row->name, is, least);
	return 0;
}

/* --- one function a type: the value in its one form, or NULL with *e --- */

static size_t count_characters(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

/* Who reads it as a C text would see the part before the NUL and run that. */
static int check_nul(const struct argument *row, const json_t *text, struct err *e)
{
	size_t at = strlen(json_string_value(text));

	if (at == json_string_length(text))
		return 0;
	return err_set(e, ERR_BAD_SPEC, "%s: has a NUL byte, as character %zu; in a Python text write \\x00 for it", row->name,
		       count_characters(json_string_value(text)) + 1);
}

static json_t *take_text(const struct argument *row, const json_t *given, struct err *e)
{
	if (!json_is_string(given)) {
		expected(e, row, given, "a text");
		return NULL;
	}
	if (check_nul(row, given, e) < 0 || check_length(row, count_characters(json_string_value(given)), "characters", e) < 0)
		return NULL;
	return json_incref((json_t *)given);
}

/* Models write numbers as texts now and then. The whole text, or it is none. */
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

static json_t *take_number(const struct argument *row, const json_t *given, struct err *e)
{
	double value;

	if (!number_of(given, &value)) {
		expected(e, row, given, "a number");
		return NULL;
	}
	return check_range(row, value, e) < 0 ? NULL : json_real(value);
}

#define EXACT_MAX 9007199254740992.0 /* 2^53 */

static json_t *take_count(const struct argument *row, const json_t *given, struct err *e)
{
	double value;

	if (!number_of(given, &value) || value > EXACT_MAX || value < -EXACT_MAX || value != (double)(int64_t)value) {
		expected(e, row, given, "a whole number");
		return NULL;
	}
	return check_range(row, value, e) < 0 ? NULL : json_integer((int64_t)value);
}

static json_t *take_bool(const struct argument *row, const json_t *given, struct err *e)
{
	static const char *const words[] = { "false", "true" };
	const char *text = json_string_value(given);

	if (json_is_boolean(given))
		return json_incref((json_t *)given);
	for (int i = 0; i < 2; i++)
		if (text && strcmp(text, words[i]) == 0)
			return json_boolean(i);
	expected(e, row, given, "true or false");
	return NULL;
}

/* Lists and objects come as their JSON in a text now and then. */
static json_t *unwrapped(const json_t *given)
{
	const char *text  = json_string_value(given);
	json_t     *found = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;

	return found ? found : json_incref((json_t *)given);
}

static int check_texts(const struct argument *row, const json_t *list, struct err *e)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *text = json_array_get(list, i);
		char          buf[TEXT_SHOWN + 8];

		if (!json_is_string(text))
			return err_set(e, ERR_BAD_SPEC, "%s[%zu]: expected a text, not %s", row->name, i, shown(text, buf, sizeof buf));
		if (check_nul(row, text, e) < 0)
			return -1;
	}
	return check_length(row, json_array_size(list), "texts", e);
}

static json_t *take_texts(const struct argument *row, const json_t *given, struct err *e)
{
	json_t *list = unwrapped(given);
	int     bad  = json_is_array(list) ? check_texts(row, list, e) : expected(e, row, given, "a list of texts, as [\"a\", \"b\"]");

	if (bad < 0)
		json_decref(list);
	return bad < 0 ? NULL : list;
}

static int check_members(const struct argument *row, const json_t *map, struct err *e)
{
	const char *key;
	json_t     *value;
	char        buf[TEXT_SHOWN + 8];

	json_object_foreach((json_t *)map, key, value) {
		if (!json_is_string(value))
			return err_set(e, ERR_BAD_SPEC, "%s: %.60s: expected a text, not %s", row->name, key, shown(value, buf, sizeof buf));
		if (check_nul(row, value, e) < 0)
			return -1;
	}
	return check_length(row, json_object_size(map), "members", e);
}

static json_t *take_map(const struct argument *row, const json_t *given, struct err *e)
{
	json_t *map = unwrapped(given);
	int     bad = json_is_object(map) ? check_members(row, map, e) : expected(e, row, given, "an object of texts, as {\"NAME\": \"value\"}");

	if (bad < 0)
		json_decref(map);
	return bad < 0 ? NULL : map;
}

/* Without a unit it is MiB, as a number and as a text: nobody means 128 bytes. */
static bool size_of(const json_t *given, uint64_t *ret)
{
	const char *text = json_string_value(given);
	double      number;

	if (number_of(given, &number)) {
		*ret = number > 0 && number < (double)(1ull << 40) ? (uint64_t)(number * (double)MIB) : 0;
		return *ret > 0;
	}
	return text && strlen(text) == json_string_length(given) && text_to_size(text, ret) == 0;
}

static json_t *take_size(const struct argument *row, const json_t *given, struct err *e)
{
	uint64_t bytes;
	char     is[32], least[32], most[32];

	if (!size_of(given, &bytes)) {
		expected(e, row, given, "a size as \"256m\" or \"1g\", or a number of MiB");
		return NULL;
	}
	text_from_size(bytes, is, sizeof is);
	text_from_size((uint64_t)row->min, least, sizeof least);
	text_from_size((uint64_t)row->max, most, sizeof most);
	if (is_bounded(row) && ((double)bytes > row->max || (double)bytes < row->min)) {
		err_set(e, ERR_BAD_SPEC, "%s: %s is outside %s..%s", row->name, is, least, most);
		return NULL;
	}
	if ((double)bytes < row->min) {
		err_set(e, ERR_BAD_SPEC, "%s: %s is too little; the least is %s", row->name, is, least);
		return NULL;
	}
	return json_integer((json_int_t)bytes);
}

static void join(const char *const *list, char *ret, size_t len)
{
	size_t at = 0;

	ret[0] = 0;
	for (size_t i = 0; list[i] && at < len; i++)
		at += (size_t)snprintf(ret + at, len - at, "%s%s", i ? ", " : "", list[i]);
}

static json_t *take_choice(const struct argument *row, const json_t *given, struct err *e)
{
	const char *text = json_string_value(given);
	char        choices[200], what[220];

	for (size_t i = 0; text && row->choices[i]; i++)
		if (strcmp(text, row->choices[i]) == 0)
			return json_incref((json_t *)given);
	join(row->choices, choices, sizeof choices);
	snprintf(what, sizeof what, "one of %s", choices);
	expected(e, row, given, what);
	return NULL;
}

/* clang-format off */
static const struct {
	json_t    *(*take)(const struct argument *row, const json_t *given, struct err *e);
	const char  *schema; /* its type there */
} types[] = {
	[ARGUMENT_TEXT]   = { take_text,   "string" },
	[ARGUMENT_COUNT]  = { take_count,  "integer" },
	[ARGUMENT_NUMBER] = { take_number, "number" },
	[ARGUMENT_BOOL]   = { take_bool,   "boolean" },
	[ARGUMENT_TEXTS]  = { take_texts,  "array" },
	[ARGUMENT_MAP]    = { take_map,    "object" },
	[ARGUMENT_SIZE]   = { take_size,   "string" }, /* a union with numbers is refused by some clients */
	[ARGUMENT_CHOICE] = { take_choice, "string" },
};
/* clang-format on */

/* --- all of them --- */

static const struct argument *find_row(const struct argument *rows, const char *name)
{
	for (; rows->name; rows++)
		if (strcmp(rows->name, name) == 0)
			return rows;
	return NULL;
}

static void names_of(const struct argument *rows, char *ret, size_t len)
{
	size_t at = 0;

	ret[0] = 0;
	for (size_t i = 0; rows[i].name && at < len; i++)
		at += (size_t)snprintf(ret + at, len - at, "%s%s", i ? ", " : "", rows[i].name);
}

/* What models ask for because other sandboxes have it; a name ends the list. */
static const struct {
	const char *names[12];
	const char *advice;
} wishes[] = {
	{ { "session", "session_id", "sessionid", "context", "context_id", "kernel", "kernel_id", "persist", "state", NULL }, "there are no sessions yet: send the whole program" },
	{ { "file", "files", "file_path", "filename", "path", "upload", "uploads", "attachments", NULL }, "put contents into code or stdin" },
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

	for (; rows->name; rows++)
		if ((d = nearest_distance(rows->name, name)) < least) {
			least = d;
			found = rows->name;
		}
	return found;
}

/* Behind "was ignored". Advice is about programs: for tools that take one. */
static void say_instead(const struct argument *rows, const char *name, const char *names, char *ret, size_t len)
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
		say_instead(rows, name, names, instead, sizeof instead);
		json_array_append_new(warnings, json_sprintf("The argument '%s' is unknown and was ignored; %s", name, instead));
	}
}

static json_t *take_one(const struct argument *row, const json_t *given, struct err *e)
{
	if (given && !json_is_null(given))
		return types[row->type].take(row, given, e);
	if (!row->must)
		return json_null();
	err_set(e, ERR_BAD_SPEC, "%s: missing; %s", row->name, row->doc);
	return NULL;
}

json_t *arguments_take(const struct argument *rows, const json_t *given, json_t *warnings, struct err *e)
{
	json_t *taken = json_object(), *value;

	for (const struct argument *row = rows; row->name; row++) {
		if (!(value = take_one(row, json_object_get(given, row->name), e))) {
			text_make_plain(e->text);
			json_decref(taken);
			return NULL;
		}
		json_object_set_new(taken, row->name, value);
	}
	if (warnings)
		warn_of_unknown(rows, given, warnings);
	return taken;
}

/* --- the schema: the portable part of it, since each client knows another one --- */

static void add_bounds(json_t *schema, const struct argument *row)
{
	bool whole = row->type == ARGUMENT_COUNT;

	if (!is_bounded(row))
		return;
	json_object_set_new(schema, "minimum", whole ? json_integer((json_int_t)row->min) : json_real(row->min));
	json_object_set_new(schema, "maximum", whole ? json_integer((json_int_t)row->max) : json_real(row->max));
}

static void add_choices(json_t *schema, const struct argument *row)
{
	json_t *list = json_array();

	for (size_t i = 0; row->choices[i]; i++)
		json_array_append_new(list, json_string(row->choices[i]));
	json_object_set_new(schema, "enum", list);
}

static json_t *schema_of(const struct argument *row)
{
	json_t *schema = json_pack("{ss ss}", "type", types[row->type].schema, "description", row->doc);

	if (row->type == ARGUMENT_TEXTS)
		json_object_set_new(schema, "items", json_pack("{ss}", "type", "string"));
	if (row->type == ARGUMENT_MAP)
		json_object_set_new(schema, "additionalProperties", json_pack("{ss}", "type", "string"));
	if (row->type == ARGUMENT_CHOICE)
		add_choices(schema, row);
	if (row->type == ARGUMENT_COUNT || row->type == ARGUMENT_NUMBER)
		add_bounds(schema, row);
	if (row->preset)
		json_object_set_new(schema, "default", json_loads(row->preset, JSON_DECODE_ANY, NULL));
	return schema;
}

json_t *arguments_schema(const struct argument *rows)
{
	json_t *properties = json_object(), *must = json_array(), *schema = json_pack("{ss}", "type", "object");

	for (const struct argument *row = rows; row && row->name; row++) {
		json_object_set_new(properties, row->name, schema_of(row));
		if (row->must)
			json_array_append_new(must, json_string(row->name));
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
