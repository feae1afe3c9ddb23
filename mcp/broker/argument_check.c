#include "argument_check.h"

#include "signature.h"
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { STEPS_MAX = 200000, DEPTH_MAX = 32, REFS_MAX = 16 };

struct check {
	const json_t *root;
	int           steps;
	char          path[200]; /* "entities[2].name" */
	struct err   *e;
};

static int printf_like(2, 3) wrong(struct check *c, const char *fmt, ...)
{
	char    text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	err_set(c->e, ERR_BAD_SPEC, "%s%s%s", c->path, *c->path ? ": " : "", text);
	text_make_plain(c->e->text);
	return -1;
}

/* Appends to the path; returns its length before, to which the caller cuts it again. */
static size_t enter(struct check *c, const char *key, size_t index)
{
	size_t n = strlen(c->path);

	if (key)
		snprintf(c->path + n, sizeof c->path - n, "%s%.60s", n ? "." : "", key);
	else
		snprintf(c->path + n, sizeof c->path - n, "[%zu]", index);
	return n;
}

/* What is not checked does not pass: a program would put many values before the one that is refused. */
static int take_step(struct check *c)
{
	return ++c->steps > STEPS_MAX ? wrong(c, "the arguments have more than %d values to check; send fewer at once", STEPS_MAX) : 0;
}

/* --- one value --- */

/* Every double from 2^53 on is whole. */
static bool is_whole(double value)
{
	return value >= 0x1p53 || value <= -0x1p53 || (double)(long long)value == value;
}

#define BIT(type) (1u << (type))

static const struct {
	const char *name;
	unsigned    of; /* bits of json_typeof() */
} types[] = {
	{ "string", BIT(JSON_STRING) },
	{ "integer", BIT(JSON_INTEGER) },
	{ "number", BIT(JSON_INTEGER) | BIT(JSON_REAL) },
	{ "boolean", BIT(JSON_TRUE) | BIT(JSON_FALSE) },
	{ "null", BIT(JSON_NULL) },
	{ "array", BIT(JSON_ARRAY) },
	{ "object", BIT(JSON_OBJECT) },
};

/* The server judges a type that is not known here. A real that is whole is an integer, too. */
static bool fits_type(const json_t *value, const char *type)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (strcmp(type, types[i].name) == 0)
			return (types[i].of & BIT(json_typeof(value))) ||
			       (types[i].of == BIT(JSON_INTEGER) && json_is_real(value) && is_whole(json_real_value(value)));
	return true;
}

static int check_type(struct check *c, const json_t *value, const json_t *type)
{
	const char *name = json_string_value(type), *one;

	if (name)
		return fits_type(value, name) ? 0 : wrong(c, "expected %.20s", name);
	for (size_t i = 0; i < json_array_size(type); i++) {
		if (take_step(c) < 0)
			return -1;
		if (!(one = json_string_value(json_array_get(type, i))) || fits_type(value, one))
			return 0;
	}
	return json_array_size(type) ? wrong(c, "expected another type; see its signature") : 0;
}

static int check_enum(struct check *c, const json_t *value, const json_t *list)
{
	char   known[160] = "";
	size_t n = 0;

	if (!json_array_size(list) || json_is_array(value) || json_is_object(value))
		return 0;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));

		if (take_step(c) < 0)
			return -1;
		if (json_equal(value, json_array_get(list, i)))
			return 0;
		if (text && n < sizeof known)
			n += (size_t)snprintf(known + n, sizeof known - n, "%s%.40s", n ? ", " : "", text);
	}
	return wrong(c, "expected one of %.150s", *known ? known : "the values of its schema");
}

/* --- what is in it --- */

static int check(struct check *c, const json_t *value, const json_t *schema, int depth);

static int check_items(struct check *c, const json_t *list, const json_t *items, int depth)
{
	size_t  i, cut;
	json_t *item;

	if (!json_is_object(items))
		return 0;
	json_array_foreach((json_t *)list, i, item) {
		cut = enter(c, NULL, i);
		if (check(c, item, items, depth + 1) < 0)
			return -1;
		c->path[cut] = 0;
	}
	return 0;
}

static int check_required(struct check *c, const json_t *object, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *name = json_string_value(json_array_get(list, i));

		if (take_step(c) < 0)
			return -1;
		if (name && !json_object_get(object, name))
			return wrong(c, "the argument %.60s is missing", name);
	}
	return 0;
}

static int check_keys(struct check *c, const json_t *object, const json_t *schema, int depth)
{
	const json_t *known = json_object_get(schema, "properties"), *more = json_object_get(schema, "additionalProperties");
	bool          closed = json_is_false(more) && !json_object_get(schema, "patternProperties");
	const char   *key;
	json_t       *value;
	size_t        cut;

	json_object_foreach((json_t *)object, key, value) {
		const json_t *of = json_object_get(known, key);

		if (!of && closed)
			return wrong(c, "there is no argument %.60s", key);
		cut = enter(c, key, 0);
		if (check(c, value, of ? of : json_is_object(more) ? more : NULL, depth + 1) < 0)
			return -1;
		c->path[cut] = 0;
	}
	return 0;
}

/* References may form a cycle, so at most REFS_MAX are followed. One that leads to nothing here is for the server to judge. */
static int resolve(struct check *c, const json_t **schema)
{
	const char *ref;

	for (int i = 0; (ref = json_string_value(json_object_get(*schema, "$ref"))); i++) {
		if (i == REFS_MAX)
			return wrong(c, "cannot be checked: more than %d references of its schema follow each other", REFS_MAX);
		*schema = schema_follow(c->root, ref);
	}
	return 0;
}

static int check(struct check *c, const json_t *value, const json_t *schema, int depth)
{
	if (resolve(c, &schema) < 0)
		return -1;
	if (!json_is_object(schema))
		return 0;
	if (take_step(c) < 0)
		return -1;
	if (depth > DEPTH_MAX)
		return wrong(c, "nested more than %d deep", DEPTH_MAX);
	if (check_type(c, value, json_object_get(schema, "type")) < 0 || check_enum(c, value, json_object_get(schema, "enum")) < 0)
		return -1;
	if (json_is_array(value))
		return check_items(c, value, json_object_get(schema, "items"), depth);
	if (!json_is_object(value))
		return 0;
	return check_required(c, value, json_object_get(schema, "required")) < 0 ? -1 : check_keys(c, value, schema, depth);
}

int argument_check(const json_t *arguments, const json_t *schema, struct err *e)
{
	struct check c = { .root = schema, .e = e };

	return check(&c, arguments, schema, 0);
}
