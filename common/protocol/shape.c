#include "shape.h"

#include <string.h>

static bool is_text(const json_t *v)
{
	return json_is_string(v);
}

static bool is_count(const json_t *v)
{
	return json_is_integer(v) && json_integer_value(v) >= 0;
}

static bool is_int(const json_t *v)
{
	return json_is_integer(v);
}

static bool is_number(const json_t *v)
{
	return json_is_number(v);
}

static bool is_bool(const json_t *v)
{
	return json_is_boolean(v);
}

static bool is_any(const json_t *v)
{
	return v;
}

static bool is_object(const json_t *v)
{
	return json_is_object(v);
}

static bool is_texts(const json_t *v)
{
	for (size_t i = 0; i < json_array_size(v); i++)
		if (!json_is_string(json_array_get(v, i)))
			return false;
	return json_is_array(v);
}

static bool is_counts(const json_t *v)
{
	const char *key;
	json_t     *value;

	json_object_foreach((json_t *)v, key, value)
		if (!is_count(value))
			return false;
	return json_is_object(v);
}

static bool is_rows(const json_t *v)
{
	for (size_t i = 0; i < json_array_size(v); i++)
		if (!json_is_object(json_array_get(v, i)))
			return false;
	return json_is_array(v);
}

static const struct {
	const char *words; /* in messages and in the manual */
	bool (*is)(const json_t *);
} types[] = {
	[SHAPE_TEXT]   = { "text",                   is_text },
	[SHAPE_COUNT]  = { "whole number",           is_count },
	[SHAPE_INT]    = { "whole number",           is_int },
	[SHAPE_NUMBER] = { "number",                 is_number },
	[SHAPE_BOOL]   = { "true or false",          is_bool },
	[SHAPE_ANY]    = { "anything",               is_any },
	[SHAPE_TEXTS]  = { "list of texts",          is_texts },
	[SHAPE_COUNTS] = { "object of whole numbers", is_counts },
	[SHAPE_OBJECT] = { "object",                 is_object },
	[SHAPE_TABLE]  = { "object",                 is_object },
	[SHAPE_ROWS]   = { "list of objects",        is_rows },
};

static const struct shape *find(const struct shape *table, const char *name)
{
	for (; table->name; table++)
		if (strcmp(table->name, name) == 0)
			return table;
	return NULL;
}

static int check_inside(const struct shape *s, const json_t *v, struct err *e)
{
	if (s->type == SHAPE_TABLE && shape_check(s->table, v, e) < 0)
		return err_wrap(e, "%s", s->name);
	for (size_t i = 0; s->type == SHAPE_ROWS && i < json_array_size(v); i++)
		if (shape_check(s->table, json_array_get(v, i), e) < 0)
			return err_wrap(e, "%s[%zu]", s->name, i);
	return 0;
}

static int check_value(const struct shape *s, const json_t *v, struct err *e)
{
	if (!v)
		return s->need == SHAPE_MAY ? 0 : err_set(e, ERR_PROTOCOL, "%s: missing", s->name);
	if (json_is_null(v) && s->need == SHAPE_NULL)
		return 0;
	if (!types[s->type].is(v))
		return err_set(e, ERR_PROTOCOL, "%s: expected %s", s->name, types[s->type].words);
	return check_inside(s, v, e);
}

int shape_check(const struct shape *table, const json_t *object, struct err *e)
{
	const char *key;
	json_t     *value;

	if (!json_is_object(object))
		return err_set(e, ERR_PROTOCOL, "expected an object");
	json_object_foreach((json_t *)object, key, value)
		if (!find(table, key))
			return err_set(e, ERR_PROTOCOL, "%.60s: no such key", key);
	for (const struct shape *s = table; s->name; s++)
		if (check_value(s, json_object_get(object, s->name), e) < 0)
			return -1;
	return 0;
}

int shape_print_mdoc(const struct shape *table, FILE *out)
{
	static const char *const needs[] = { [SHAPE_MUST] = "", [SHAPE_NULL] = ", or null", [SHAPE_MAY] = ", may be missing" };

	fputs(".Bl -tag -width Ds\n", out);
	for (const struct shape *s = table; s->name; s++) {
		fprintf(out, ".It Ic %s Pq %s%s\n%s.\n", s->name, types[s->type].words, needs[s->need], s->doc);
		if (s->table)
			shape_print_mdoc(s->table, out);
	}
	return fputs(".El\n", out);
}
