#include "field.h"

#include "text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void *at(const struct field *f, void *into)
{
	return (char *)into + f->offset;
}

const struct field *field_find(const struct field *table, const char *name)
{
	for (; table->name; table++)
		if (strcmp(table->name, name) == 0)
			return table;
	return NULL;
}

void field_print_value(const struct field *f, uint64_t value, char *buf, size_t len)
{
	switch (f->type) {
	case FIELD_SIZE:
		text_from_size(value, buf, len);
		return;
	case FIELD_MILLI:
		text_from_milli(value, buf, len);
		return;
	default:
		snprintf(buf, len, "%" PRIu64, value);
	}
}

void field_print_text(const struct field *f, uint64_t value, char *buf, size_t len)
{
	if (f->type == FIELD_MS)
		text_from_milli(value, buf, len);
	else
		field_print_value(f, value, buf, len);
}

typedef void print_fn(const struct field *, uint64_t value, char *buf, size_t len);

static int put_number(const struct field *f, uint64_t x, void *into, print_fn *print, struct err *e)
{
	char is[32], least[32], most[32];

	if (x < f->min || x > f->max) {
		print(f, x, is, sizeof is);
		print(f, f->min, least, sizeof least);
		print(f, f->max, most, sizeof most);
		return err_set(e, ERR_BAD_SPEC, "%s is outside %s..%s", is, least, most);
	}
	*(uint64_t *)at(f, into) = x;
	return 0;
}

static int set_number(const struct field *f, uint64_t x, void *into, struct err *e)
{
	return put_number(f, x, into, field_print_value, e) < 0 ? err_wrap(e, "%s", f->name) : 0;
}

/* "pids: \"64\" is not a whole number from 1 to 32768" */
static int refuse_type(const struct field *f, const json_t *v, const char *what, struct err *e)
{
	char *is = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
	char  least[32], most[32];

	field_print_value(f, f->min, least, sizeof least);
	field_print_value(f, f->max, most, sizeof most);
	err_set(e, ERR_BAD_SPEC, "%s: %.40s is not %s from %s to %s", f->name, is ? is : "?", what, least, most);
	free(is);
	return -1;
}

static int decode_integer(const struct field *f, const json_t *v, void *into, struct err *e)
{
	json_int_t x = json_integer_value(v);

	if (!json_is_integer(v) || x < 0)
		return refuse_type(f, v, "a whole number", e);
	return set_number(f, (uint64_t)x, into, e);
}

static int decode_size(const struct field *f, const json_t *v, void *into, struct err *e)
{
	uint64_t x;

	if (!json_is_string(v))
		return json_is_integer(v) ? decode_integer(f, v, into, e)
					  : refuse_type(f, v, "bytes (67108864) or a size (\"64M\")", e);
	if (text_to_size(json_string_value(v), &x) < 0)
		return refuse_type(f, v, "a size like 64M", e);
	return set_number(f, x, into, e);
}

static int decode_milli(const struct field *f, const json_t *v, void *into, struct err *e)
{
	double   x     = json_number_value(v) * 1000;
	uint64_t whole = json_is_number(v) && x >= 0 && x <= 1e15 ? (uint64_t)(x + 0.5) : UINT64_MAX;

	if (whole == UINT64_MAX || x - (double)whole > 1e-6 || (double)whole - x > 1e-6)
		return refuse_type(f, v, "a number with at most three decimals", e);
	return set_number(f, whole, into, e);
}

static int decode_bool(const struct field *f, const json_t *v, void *into, struct err *e)
{
	if (!json_is_boolean(v))
		return err_set(e, ERR_BAD_SPEC, "%s: expected true or false", f->name);
	*(bool *)at(f, into) = json_is_true(v);
	return 0;
}

static int check_string(const struct field *f, const json_t *v, size_t max, struct err *e)
{
	if (!json_is_string(v) || json_string_length(v) > max)
		return err_set(e, ERR_BAD_SPEC, "%s: expected text of at most %zu bytes", f->name, max);
	if (strlen(json_string_value(v)) != json_string_length(v))
		return err_set(e, ERR_BAD_SPEC, "%s: a NUL byte is not text", f->name);
	return 0;
}

static int decode_str(const struct field *f, const json_t *v, void *into, struct err *e)
{
	if (check_string(f, v, f->max, e) < 0)
		return -1;
	*(const char **)at(f, into) = json_string_value(v);
	return 0;
}

static int decode_name(const struct field *f, const json_t *v, void *into, struct err *e)
{
	if (check_string(f, v, 63, e) < 0)
		return -1;
	if (!text_is_name(json_string_value(v)))
		return err_set(e, ERR_BAD_SPEC, "%s: \"%.63s\" is no name; use a-z, 0-9, '-', '_', '.'", f->name, json_string_value(v));
	*(const char **)at(f, into) = json_string_value(v);
	return 0;
}

static int set_choice(const struct field *f, const char *text, void *into, struct err *e)
{
	char   list[160] = "";
	size_t n         = 0;

	for (unsigned i = 0; f->choices[i]; i++) {
		if (strcmp(f->choices[i], text) == 0) {
			*(unsigned *)at(f, into) = i;
			return 0;
		}
		if (n < sizeof list)
			n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", f->choices[i]);
	}
	return err_set(e, ERR_BAD_SPEC, "%s: \"%.40s\" is none of %s", f->name, text, list);
}

static int decode_choice(const struct field *f, const json_t *v, void *into, struct err *e)
{
	return check_string(f, v, 63, e) < 0 ? -1 : set_choice(f, json_string_value(v), into, e);
}

static int decode_list(const struct field *f, const json_t *v, void *into, struct err *e)
{
	size_t  i;
	json_t *item;

	if (!json_is_array(v) || json_array_size(v) > f->max)
		return err_set(e, ERR_BAD_SPEC, "%s: expected a list of at most %" PRIu64 " texts", f->name, f->max);
	json_array_foreach(v, i, item)
		if (check_string(f, item, 4096, e) < 0)
			return -1;
	*(const json_t **)at(f, into) = v;
	return 0;
}

static int decode_words(const struct field *f, const json_t *v, void *into, struct err *e)
{
	size_t  i;
	json_t *item;

	if (!json_is_array(v) || json_array_size(v) < f->min || json_array_size(v) > f->max)
		return err_set(e, ERR_BAD_SPEC, "%s: expected a list of %" PRIu64 " to %" PRIu64 " texts", f->name, f->min, f->max);
	json_array_foreach(v, i, item)
		if (!json_is_string(item) || strlen(json_string_value(item)) != json_string_length(item))
			return err_set(e, ERR_BAD_SPEC, "%s[%zu]: expected text", f->name, i);
	*(const json_t **)at(f, into) = v;
	return 0;
}

static int decode_object(const struct field *f, const json_t *v, void *into, struct err *e)
{
	if (!json_is_object(v))
		return err_set(e, ERR_BAD_SPEC, "%s: expected an object", f->name);
	*(const json_t **)at(f, into) = v;
	return 0;
}

static int decode_rows(const struct field *f, const json_t *v, void *into, struct err *e)
{
	size_t  i;
	json_t *item;

	if (!json_is_array(v) || json_array_size(v) > f->max)
		return err_set(e, ERR_BAD_SPEC, "%s: expected a list of at most %" PRIu64 " objects", f->name, f->max);
	json_array_foreach(v, i, item)
		if (!json_is_object(item))
			return err_set(e, ERR_BAD_SPEC, "%s[%zu]: expected an object", f->name, i);
	*(const json_t **)at(f, into) = v;
	return 0;
}

static int decode_table(const struct field *f, const json_t *v, void *into, struct err *e)
{
	if (!json_is_object(v))
		return err_set(e, ERR_BAD_SPEC, "%s: expected an object", f->name);
	return fields_decode(f->table, v, at(f, into), e) < 0 ? err_wrap(e, "%s", f->name) : 0;
}

static int decode_note(const struct field *f, const json_t *v, void *into, struct err *e)
{
	(void)into;
	return check_string(f, v, f->max, e);
}

static const struct {
	const char *schema;
	const char *words; /* in the manual */
	int (*decode)(const struct field *, const json_t *, void *, struct err *);
} types[] = {
	[FIELD_COUNT]  = { "integer", "integer",                   decode_integer },
	[FIELD_SIZE]   = { NULL,      "bytes, or a size like 64M", decode_size },
	[FIELD_MS]     = { "integer", "milliseconds",              decode_integer },
	[FIELD_MILLI]  = { "number",  "number",                    decode_milli },
	[FIELD_BOOL]   = { "boolean", "true or false",             decode_bool },
	[FIELD_STR]    = { "string",  "text",                      decode_str },
	[FIELD_NAME]   = { "string",  "name",                      decode_name },
	[FIELD_CHOICE] = { "string",  "one of a list",             decode_choice },
	[FIELD_LIST]   = { "array",   "list of texts",             decode_list },
	[FIELD_WORDS]  = { "array",   "list of texts",             decode_words },
	[FIELD_OBJECT] = { "object",  "object",                    decode_object },
	[FIELD_ROWS]   = { "array",   "list of objects",           decode_rows },
	[FIELD_TABLE]  = { "object",  "object",                    decode_table },
	[FIELD_NOTE]   = { "string",  "text, not used",            decode_note },
};

int fields_decode(const struct field *table, const json_t *from, void *into, struct err *e)
{
	const char *key;
	json_t     *value;

	json_object_foreach((json_t *)from, key, value)
	{
		const struct field *f = field_find(table, key);

		if (!f)
			return err_set(e, ERR_BAD_SPEC, "%.60s: no such setting", key);
		if (types[f->type].decode(f, value, into, e) < 0)
			return -1;
	}
	return 0;
}

static bool is_number(const struct field *f)
{
	return f->type <= FIELD_MILLI;
}

void fields_preset(const struct field *table, void *into)
{
	for (const struct field *f = table; f->name; f++) {
		if (is_number(f))
			*(uint64_t *)at(f, into) = f->preset;
		else if (f->type == FIELD_BOOL)
			*(bool *)at(f, into) = f->preset;
		else if (f->type == FIELD_CHOICE)
			*(unsigned *)at(f, into) = (unsigned)f->preset;
		else if (f->type == FIELD_TABLE)
			fields_preset(f->table, at(f, into));
	}
}

int field_from_text(const struct field *f, const char *text, void *into, struct err *e)
{
	static const struct {
		int (*parse)(const char *, uint64_t *);
		const char *like;
	} readers[] = {
		[FIELD_COUNT] = { text_to_u64,         "a whole number, like 64" },
		[FIELD_SIZE]  = { text_to_size,        "a size, like 64M or 1G" },
		[FIELD_MS]    = { text_to_duration_ms, "seconds, like 30 or 0.5" },
		[FIELD_MILLI] = { text_to_milli,       "a number, like 2 or 0.125" },
	};
	uint64_t x;

	if (f->type == FIELD_CHOICE)
		return set_choice(f, text, into, e);
	if (!is_number(f))
		return err_set(e, ERR_BROKEN, "%s: cannot be set from text", f->name);
	if (readers[f->type].parse(text, &x) < 0)
		return err_set(e, ERR_BAD_SPEC, "\"%.40s\" is not %s", text, readers[f->type].like);
	return put_number(f, x, into, field_print_text, e);
}

json_t *field_json(const struct field *f, uint64_t value)
{
	return f->type == FIELD_MILLI ? json_real((double)value / 1000) : json_integer((json_int_t)value);
}

static bool has_preset(const struct field *f)
{
	return f->preset >= f->min && f->preset <= f->max;
}

static json_t *field_schema(const struct field *f)
{
	json_t *s;

	if (f->type == FIELD_TABLE)
		s = fields_schema(f->table);
	else if (f->type == FIELD_SIZE)
		s = json_pack("{s[ss]}", "type", "integer", "string");
	else
		s = json_pack("{ss}", "type", types[f->type].schema);
	json_object_set_new(s, "description", json_string(f->doc));
	if (is_number(f)) {
		double unit = f->type == FIELD_MILLI ? 1000.0 : 0;

		json_object_set_new(s, "minimum", unit ? json_real((double)f->min / unit) : json_integer((json_int_t)f->min));
		json_object_set_new(s, "maximum", unit ? json_real((double)f->max / unit) : json_integer((json_int_t)f->max));
		if (has_preset(f))
			json_object_set_new(s, "default", unit ? json_real((double)f->preset / unit) : json_integer((json_int_t)f->preset));
	}
	if (f->type == FIELD_BOOL)
		json_object_set_new(s, "default", json_boolean(f->preset));
	if (f->type == FIELD_LIST || f->type == FIELD_WORDS)
		json_object_set_new(s, "items", json_pack("{ss}", "type", "string"));
	if (f->type == FIELD_LIST && f->max)
		json_object_set_new(s, "maxItems", json_integer((json_int_t)f->max));
	if (f->type == FIELD_CHOICE) {
		json_t *names = json_array();

		for (unsigned i = 0; f->choices[i]; i++)
			json_array_append_new(names, json_string(f->choices[i]));
		json_object_set_new(s, "enum", names);
		json_object_set_new(s, "default", json_string(f->choices[f->preset]));
	}
	return s;
}

json_t *fields_schema(const struct field *table)
{
	json_t *properties = json_object();

	for (const struct field *f = table; f->name; f++)
		json_object_set_new(properties, f->name, field_schema(f));
	return json_pack("{sssbso}", "type", "object", "additionalProperties", 0, "properties", properties);
}

static bool is_list(const struct field *f)
{
	return f->type == FIELD_LIST || f->type == FIELD_WORDS || f->type == FIELD_ROWS;
}

int fields_print_mdoc(const struct field *table, FILE *out)
{
	char least[32], most[32], preset[32];

	fputs(".Bl -tag -width Ds\n", out);
	for (const struct field *f = table; f->name; f++) {
		fprintf(out, ".It Ic %s Pq %s\n%s.\n", f->name, types[f->type].words, f->doc);
		if (is_number(f)) {
			field_print_value(f, f->min, least, sizeof least);
			field_print_value(f, f->max, most, sizeof most);
			field_print_value(f, f->preset, preset, sizeof preset);
			fprintf(out, has_preset(f) ? "From %s to %s, preset %s.\n" : "From %s to %s.\n", least, most, preset);
		} else if (f->type == FIELD_BOOL) {
			fprintf(out, "Preset %s.\n", f->preset ? "true" : "false");
		} else if (f->type == FIELD_CHOICE) {
			for (unsigned i = 0; f->choices[i]; i++)
				fprintf(out, i ? ", %s" : "One of %s", f->choices[i]);
			fprintf(out, "; preset %s.\n", f->choices[f->preset]);
		} else if (is_list(f) && f->max) {
			fprintf(out, "At most %llu.\n", (unsigned long long)f->max);
		}
	}
	return fputs(".El\n", out);
}
