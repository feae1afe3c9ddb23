/*
 * fuzz_rows.h - structs described by a field table: within its bounds, printed and read again.
 *
 * For every file that is read by rows (field.h): profiles, recipes.
 */
#pragma once
#include "field_json.h"
#include "fuzz.h"

static inline const void *row_at(const struct field *f, const void *from)
{
	return (const char *)from + f->offset;
}

static inline bool row_is_number(const struct field *f)
{
	return f->type <= FIELD_MILLI;
}

static inline bool row_is_json(const struct field *f)
{
	return f->type == FIELD_LIST || f->type == FIELD_WORDS || f->type == FIELD_ROWS || f->type == FIELD_MIXED || f->type == FIELD_OBJECT;
}

static inline void must_be_sound(const struct field *f, const json_t *value)
{
	size_t  i;
	json_t *item;

	if (f->type == FIELD_OBJECT) {
		must_about(f->name, json_is_object(value));
		return;
	}
	must_about(f->name, json_is_array(value) && json_array_size(value) <= f->max);
	must_about(f->name, f->type != FIELD_WORDS || json_array_size(value) >= f->min);
	json_array_foreach(value, i, item)
		must_about(f->name, f->type == FIELD_ROWS || (f->type == FIELD_MIXED && !json_is_string(item)) ? json_is_object(item)
						       : json_is_string(item) && (f->type == FIELD_WORDS || json_string_length(item) <= 4096));
}

/* What nobody said may have a preset that nobody could say. */
static inline bool row_is_within(const struct field *f, uint64_t value)
{
	return value >= f->min && value <= f->max;
}

/* Every row keeps the bounds that the manual prints. */
static inline void must_keep_bounds(const struct field *table, const void *from)
{
	for (const struct field *f = table; f->name; f++) {
		const char *const *text = row_at(f, from);

		if (row_is_number(f))
			must_about(f->name, row_is_within(f, *(const uint64_t *)row_at(f, from)) || *(const uint64_t *)row_at(f, from) == f->preset);
		else if (f->type == FIELD_CHOICE)
			must_about(f->name, *(const unsigned *)row_at(f, from) <= f->max);
		else if (f->type == FIELD_NAME)
			must_about(f->name, !*text || text_is_name(*text));
		else if (f->type == FIELD_STR)
			must_about(f->name, !*text || (strlen(*text) <= f->max && text_is_utf8(*text, strlen(*text))));
		else if (row_is_json(f) && *(const json_t *const *)row_at(f, from))
			must_be_sound(f, *(const json_t *const *)row_at(f, from));
		else if (f->type == FIELD_TABLE)
			must_keep_bounds(f->table, row_at(f, from));
	}
}

static inline json_t *row_number_to_json(const struct field *f, uint64_t value)
{
	char    text[32];
	json_t *number;

	field_print_value(f, value, text, sizeof text);
	if (f->type == FIELD_SIZE)
		return json_string(text);
	number = json_loads(text, JSON_DECODE_ANY, NULL);
	must_about(text, number);
	return number;
}

/* As an admin would write it; NULL for what was not said. */
static inline json_t *rows_to_json(const struct field *table, const void *from)
{
	json_t *object = json_object();

	for (const struct field *f = table; f->name; f++) {
		const void *at    = row_at(f, from);
		json_t     *value = NULL;

		if (row_is_number(f))
			value = row_is_within(f, *(const uint64_t *)at) ? row_number_to_json(f, *(const uint64_t *)at) : NULL;
		else if (f->type == FIELD_BOOL)
			value = json_boolean(*(const bool *)at);
		else if (f->type == FIELD_CHOICE)
			value = json_string(f->choices[*(const unsigned *)at]);
		else if ((f->type == FIELD_NAME || f->type == FIELD_STR) && *(const char *const *)at)
			value = json_string(*(const char *const *)at);
		else if (row_is_json(f) && *(const json_t *const *)at)
			value = json_deep_copy(*(const json_t *const *)at);
		else if (f->type == FIELD_TABLE)
			value = rows_to_json(f->table, at);
		if (value)
			json_object_set_new(object, f->name, value);
	}
	return object;
}

/* A refusal of a file read by rows begins with where: a line, or the name of the row. */
static inline void must_name_row(const struct field *table, const struct err *e)
{
	static const char *const whole[] = { "line ", "expected an object", "1", "2", "3", "4", "5", "6", "7", "8", "9", "0 bytes" };

	must_say_why(e);
	if (e->kind == ERR_PROTOCOL) {
		for (size_t i = 0; i < ARRAY_LEN(whole); i++)
			if (begins_with(e->text, whole[i]))
				return;
		must_about(e->text, !"names a line");
	}
	if (strstr(e->text, ": no such setting"))
		return;
	for (const struct field *f = table; f->name; f++)
		if (begins_with(e->text, f->name) && strspn(e->text + strlen(f->name), ":[")) /* or an item of a list */
			return;
	must_about(e->text, !"names a row");
}
