#include "shape.h"

#include <string.h>

static bool all_items_have_type(const json_t *list, json_type type)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (json_typeof(json_array_get(list, i)) != type)
			return false;
	return json_is_array(list);
}

static bool has_shape_type(const json_t *v, enum shape_type type)
{
	const char *key;
	json_t     *value;

	switch (type) {
	case SHAPE_TEXT:
		return json_is_string(v);
	case SHAPE_COUNT:
		return json_is_integer(v) && json_integer_value(v) >= 0;
	case SHAPE_INT:
		return json_is_integer(v);
	case SHAPE_NUMBER:
		return json_is_number(v);
	case SHAPE_BOOL:
		return json_is_boolean(v);
	case SHAPE_ANY:
		return true;
	case SHAPE_TEXTS:
		return all_items_have_type(v, JSON_STRING);
	case SHAPE_COUNTS:
		json_object_foreach((json_t *)v, key, value)
			if (!has_shape_type(value, SHAPE_COUNT))
				return false;
		return json_is_object(v);
	case SHAPE_OBJECT:
	case SHAPE_TABLE:
		return json_is_object(v);
	case SHAPE_ROWS:
		return all_items_have_type(v, JSON_OBJECT);
	}
	return false;
}

/* In messages and in the manual. */
static const char *const type_words[] = {
	[SHAPE_TEXT]   = "text",
	[SHAPE_COUNT]  = "whole number",
	[SHAPE_INT]    = "whole number",
	[SHAPE_NUMBER] = "number",
	[SHAPE_BOOL]   = "true or false",
	[SHAPE_ANY]    = "anything",
	[SHAPE_TEXTS]  = "list of texts",
	[SHAPE_COUNTS] = "object of whole numbers",
	[SHAPE_OBJECT] = "object",
	[SHAPE_TABLE]  = "object",
	[SHAPE_ROWS]   = "list of objects",
};

static int check_shape_member(const struct shape *s, const json_t *v, struct err *e)
{
	if (!v)
		return s->need == SHAPE_MAY ? 0 : err_set(e, ERR_PROTOCOL, "%s: missing", s->name);
	if (json_is_null(v) && s->need == SHAPE_NULL)
		return 0;
	if (!has_shape_type(v, s->type))
		return err_set(e, ERR_PROTOCOL, "%s: expected %s", s->name, type_words[s->type]);
	if (s->type == SHAPE_TABLE && shape_check(s->table, v, e) < 0)
		return err_wrap(e, "%s", s->name);
	for (size_t i = 0; s->type == SHAPE_ROWS && i < json_array_size(v); i++)
		if (shape_check(s->table, json_array_get(v, i), e) < 0)
			return err_wrap(e, "%s[%zu]", s->name, i);
	return 0;
}

int shape_check(const struct shape *table, const json_t *object, struct err *e)
{
	const char *key;
	json_t     *value;

	if (!json_is_object(object))
		return err_set(e, ERR_PROTOCOL, "expected an object");
	json_object_foreach((json_t *)object, key, value) {
		const struct shape *s = table;

		while (s->name && strcmp(s->name, key) != 0)
			s++;
		if (!s->name)
			return err_set(e, ERR_PROTOCOL, "%.60s: no such key", key);
	}
	for (const struct shape *s = table; s->name; s++)
		if (check_shape_member(s, json_object_get(object, s->name), e) < 0)
			return -1;
	return 0;
}

int shape_print_mdoc(const struct shape *table, FILE *out)
{
	static const char *const needs[] = { [SHAPE_MUST] = "", [SHAPE_NULL] = ", or null", [SHAPE_MAY] = ", may be missing" };

	fputs(".Bl -tag -width Ds\n", out);
	for (const struct shape *s = table; s->name; s++) {
		fprintf(out, ".It Ic %s Pq %s%s\n%s.\n", s->name, type_words[s->type], needs[s->need], s->doc);
		if (s->table)
			shape_print_mdoc(s->table, out);
	}
	return fputs(".El\n", out);
}
