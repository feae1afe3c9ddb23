#include "field_json.h"

#include "text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_ITEM_MAX = 4096, WORD_MAX = 63, SHOWN_MAX = 60 };

/* "stdin: expected true or false, not 1" */
static int refuse_value(const char *name, const char *what, const json_t *v, struct err *e)
{
	char *is = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));

	err_set(e, ERR_BAD_SPEC, "expected %s, not %.*s%s", what, SHOWN_MAX, is ? is : "?",
		is && strlen(is) > SHOWN_MAX ? "..." : "");
	free(is);
	return err_in_field(e, name);
}

/* "pids: expected a whole number from 1 to 32768, not \"64\"" */
static int refuse_number(const struct field *f, const json_t *v, const char *what, struct err *e)
{
	char least[32], most[32], range[128];

	field_print_value(f, f->min, least, sizeof least);
	field_print_value(f, f->max, most, sizeof most);
	snprintf(range, sizeof range, "%s from %s to %s", what, least, most);
	return refuse_value(f->name, range, v, e);
}

static int set_decoded_number(const struct field *f, uint64_t x, void *into, struct err *e)
{
	return field_set_number(f, x, false, into, e) < 0 ? err_in_field(e, f->name) : 0;
}

static int decode_integer(const struct field *f, const json_t *v, void *into, struct err *e)
{
	json_int_t x = json_integer_value(v);

	if (!json_is_integer(v) || x < 0)
		return refuse_number(f, v, "a whole number", e);
	return set_decoded_number(f, (uint64_t)x, into, e);
}

static int decode_size(const struct field *f, const json_t *v, void *into, struct err *e)
{
	uint64_t x;

	if (json_is_integer(v) && json_integer_value(v) >= 0)
		return decode_integer(f, v, into, e);
	if (!json_is_string(v) || text_to_size(json_string_value(v), &x) < 0)
		return refuse_number(f, v, "a size (\"64M\")", e);
	return set_decoded_number(f, x, into, e);
}

/* A text has its unit: a number is milliseconds here, and seconds where only texts can be written. */
static int decode_ms(const struct field *f, const json_t *v, void *into, struct err *e)
{
	const char *text = json_string_value(v);
	uint64_t    x;

	if (!text)
		return json_is_integer(v) ? decode_integer(f, v, into, e) : refuse_number(f, v, "milliseconds, or a time (\"5m\"),", e);
	if (!*text || strchr("0123456789.", text[strlen(text) - 1]) || text_to_duration_ms(text, &x) < 0)
		return refuse_value(f->name, "milliseconds as a number, or a time with its unit: \"250ms\", \"90s\", \"5m\", \"1h\", \"1d\"", v, e);
	return set_decoded_number(f, x, into, e);
}

static int decode_milli(const struct field *f, const json_t *v, void *into, struct err *e)
{
	double   x     = json_number_value(v) * 1000;
	uint64_t whole = json_is_number(v) && x >= 0 && x <= 1e15 ? (uint64_t)(x + 0.5) : UINT64_MAX;

	if (whole == UINT64_MAX || x - (double)whole > 1e-6 || (double)whole - x > 1e-6)
		return refuse_number(f, v, "a number with at most three decimals", e);
	return set_decoded_number(f, whole, into, e);
}

static int decode_bool(const struct field *f, const json_t *v, void *into, struct err *e)
{
	if (!json_is_boolean(v))
		return refuse_value(f->name, "true or false", v, e);
	*(bool *)field_at(f, into) = json_is_true(v);
	return 0;
}

/* NUL is refused: code that uses the text as a C string would see only the part before it. */
static int check_string(const char *name, const json_t *v, uint64_t max, struct err *e)
{
	size_t len = json_string_length(v);

	if (!json_is_string(v))
		return refuse_value(name, "text", v, e);
	if (len > max)
		err_set(e, ERR_BAD_SPEC, "expected text of at most %" PRIu64 " bytes, not %zu", max, len);
	else if (strlen(json_string_value(v)) != len)
		err_set(e, ERR_BAD_SPEC, "has a NUL byte, as byte %zu", strlen(json_string_value(v)) + 1);
	else
		return 0;
	return err_in_field(e, name);
}

static int decode_str(const struct field *f, const json_t *v, void *into, struct err *e)
{
	if (check_string(f->name, v, f->max, e) < 0)
		return -1;
	*(const char **)field_at(f, into) = json_string_value(v);
	return 0;
}

/* A name or a choice: read as from the command line. */
static int decode_name_or_choice(const struct field *f, const json_t *v, void *into, struct err *e)
{
	if (check_string(f->name, v, WORD_MAX, e) < 0)
		return -1;
	return field_from_text(f, json_string_value(v), into, e) < 0 ? err_in_field(e, f->name) : 0;
}

static int decode_checked_only(const struct field *f, const json_t *v, void *into, struct err *e)
{
	(void)into;
	return check_string(f->name, v, f->max, e);
}

/* --- lists and maps --- */

static int check_element_count(const struct field *f, const json_t *v, struct err *e)
{
	static const struct {
		const char *kind, *items, *like;
	} words[] = {
		[FIELD_LIST]  = { "a list", "texts", "[\"a\", \"b\"]" },
		[FIELD_WORDS] = { "a list", "texts", "[\"a\", \"b\"]" },
		[FIELD_MAP]   = { "an object", "texts", "{\"NAME\": \"value\"}" },
		[FIELD_ROWS]  = { "a list", "objects", "[{...}]" },
		[FIELD_MIXED] = { "a list", "texts and objects", "[\"a\", {...}]" },
	};
	bool   is_one = f->type == FIELD_MAP ? json_is_object(v) : json_is_array(v);
	size_t n      = f->type == FIELD_MAP ? json_object_size(v) : json_array_size(v);
	char   least[32] = "at most", what[120];

	if (is_one && n >= f->min && n <= f->max)
		return 0;
	if (f->min)
		snprintf(least, sizeof least, "%" PRIu64 " to", f->min);
	snprintf(what, sizeof what, "%s of %s %" PRIu64 " %s%s%s", words[f->type].kind, least, f->max, words[f->type].items, is_one ? "" : ", as ",
		 is_one ? "" : words[f->type].like);
	if (!is_one)
		return refuse_value(f->name, what, v, e);
	err_set(e, ERR_BAD_SPEC, "expected %s, not %zu", what, n);
	return err_in_field(e, f->name);
}

static int check_element(const struct field *f, const char *name, const json_t *v, struct err *e)
{
	if (f->type == FIELD_ROWS)
		return json_is_object(v) ? 0 : refuse_value(name, "an object", v, e);
	if (f->type == FIELD_MIXED && !json_is_string(v))
		return json_is_object(v) ? 0 : refuse_value(name, "a text or an object", v, e);
	return check_string(name, v, f->type == FIELD_LIST || f->type == FIELD_MIXED ? LIST_ITEM_MAX : FIELD_ANY, e);
}

static int decode_collection(const struct field *f, const json_t *v, void *into, struct err *e)
{
	char        name[160];
	const char *key;
	size_t      i;
	json_t     *item;

	if (check_element_count(f, v, e) < 0)
		return -1;
	json_array_foreach(v, i, item) {
		snprintf(name, sizeof name, "%s[%zu]", f->name, i);
		if (check_element(f, name, item, e) < 0)
			return -1;
	}
	json_object_foreach((json_t *)v, key, item) {
		snprintf(name, sizeof name, "%.60s", key);
		if (check_element(f, name, item, e) < 0)
			return err_in_field(e, f->name);
	}
	*(const json_t **)field_at(f, into) = v;
	return 0;
}

/* --- objects --- */

static int decode_object(const struct field *f, const json_t *v, void *into, struct err *e)
{
	if (!json_is_object(v))
		return refuse_value(f->name, "an object", v, e);
	*(const json_t **)field_at(f, into) = v;
	return 0;
}

static int decode_table(const struct field *f, const json_t *v, void *into, struct err *e)
{
	if (!json_is_object(v))
		return refuse_value(f->name, "an object", v, e);
	return fields_decode(f->table, v, field_at(f, into), e) < 0 ? err_in_field(e, f->name) : 0;
}

/* clang-format off */
static const struct {
	const char *schema;
	int (*decode)(const struct field *, const json_t *, void *, struct err *);
} types[] = {
	[FIELD_COUNT]  = { "integer", decode_integer },
	[FIELD_SIZE]   = { NULL,      decode_size },
	[FIELD_MS]     = { NULL,      decode_ms },
	[FIELD_MILLI]  = { "number",  decode_milli },
	[FIELD_BOOL]   = { "boolean", decode_bool },
	[FIELD_STR]    = { "string",  decode_str },
	[FIELD_NAME]   = { "string",  decode_name_or_choice },
	[FIELD_CHOICE] = { "string",  decode_name_or_choice },
	[FIELD_LIST]   = { "array",   decode_collection },
	[FIELD_WORDS]  = { "array",   decode_collection },
	[FIELD_MAP]    = { "object",  decode_collection },
	[FIELD_OBJECT] = { "object",  decode_object },
	[FIELD_ROWS]   = { "array",   decode_collection },
	[FIELD_MIXED]  = { "array",   decode_collection },
	[FIELD_TABLE]  = { "object",  decode_table },
	[FIELD_NOTE]   = { "string",  decode_checked_only },
};
/* clang-format on */

int fields_decode(const struct field *table, const json_t *from, void *into, struct err *e)
{
	const char *key;
	json_t     *value;
	char        name[61];

	json_object_foreach((json_t *)from, key, value)
	{
		const struct field *f = field_find(table, key);

		if (!f) {
			snprintf(name, sizeof name, "%s", key);
			err_set(e, ERR_BAD_SPEC, "no such setting");
			return err_in_field(e, name);
		}
		if (types[f->type].decode(f, value, into, e) < 0)
			return -1;
	}
	return 0;
}

int field_check(const struct field *f, const json_t *value, struct err *e)
{
	struct field here = *f;
	uint64_t     nowhere; /* as large as the value of any type except FIELD_TABLE */

	here.offset = 0;
	return types[f->type].decode(&here, value, &nowhere, e);
}

json_t *field_number_to_json(const struct field *f, uint64_t value)
{
	return f->type == FIELD_MILLI ? json_real((double)value / 1000) : json_integer((json_int_t)value);
}

/* --- the schema --- */

json_t *field_schema(const struct field *f)
{
	json_t *s;

	if (f->type == FIELD_TABLE)
		s = fields_schema(f->table);
	else if (f->type == FIELD_SIZE || f->type == FIELD_MS)
		s = json_pack("{s[ss]}", "type", "integer", "string");
	else
		s = json_pack("{ss}", "type", types[f->type].schema);
	json_object_set_new(s, "description", json_string(f->doc));
	if (field_is_number(f)) {
		json_object_set_new(s, "minimum", field_number_to_json(f, f->min));
		json_object_set_new(s, "maximum", field_number_to_json(f, f->max));
		json_object_set_new(s, "default", field_has_preset(f) ? field_number_to_json(f, f->preset) : NULL);
	}
	if (f->type == FIELD_CHOICE) {
		json_t *names = json_array();

		for (unsigned i = 0; f->choices[i]; i++)
			json_array_append_new(names, json_string(f->choices[i]));
		json_object_set_new(s, "enum", names);
		json_object_set_new(s, "default", field_has_preset(f) ? json_string(f->choices[f->preset]) : NULL);
	}
	if (f->type == FIELD_BOOL && field_has_preset(f))
		json_object_set_new(s, "default", json_boolean(f->preset));
	if (f->type == FIELD_LIST || f->type == FIELD_WORDS)
		json_object_set_new(s, "items", json_pack("{ss}", "type", "string"));
	if (f->type == FIELD_MAP)
		json_object_set_new(s, "additionalProperties", json_pack("{ss}", "type", "string"));
	if (f->type == FIELD_MIXED)
		json_object_set_new(s, "items", json_pack("{s[{ss}o]}", "anyOf", "type", "string", fields_schema(f->table)));
	if (f->type == FIELD_OBJECT && f->table)
		json_object_set_new(s, "additionalProperties", fields_schema(f->table));
	if ((f->type == FIELD_LIST || f->type == FIELD_MIXED) && f->max)
		json_object_set_new(s, "maxItems", json_integer((json_int_t)f->max));
	return s;
}

json_t *fields_schema(const struct field *table)
{
	json_t *properties = json_object();

	for (const struct field *f = table; f->name; f++)
		json_object_set_new(properties, f->name, field_schema(f));
	return json_pack("{sssbso}", "type", "object", "additionalProperties", 0, "properties", properties);
}
