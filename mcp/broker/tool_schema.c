#define _GNU_SOURCE
#include "tool_schema.h"

#include "exact.h"
#include "server_entry.h"
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIT(type) (1u << (type))

static const struct {
	const char *name, *python;
	unsigned    of; /* bits of json_typeof() */
} types[] = {
	{ "string", "str", BIT(JSON_STRING) },
	{ "integer", "int", BIT(JSON_INTEGER) },
	{ "number", "float", BIT(JSON_INTEGER) | BIT(JSON_REAL) },
	{ "boolean", "bool", BIT(JSON_TRUE) | BIT(JSON_FALSE) },
	{ "null", "None", BIT(JSON_NULL) },
	{ "array", "list", BIT(JSON_ARRAY) },
	{ "object", "dict", BIT(JSON_OBJECT) },
};

/* The part of the schema that "#/$defs/x" refers to; NULL: there is none. */
static const json_t *schema_follow_ref(const json_t *root, const char *ref)
{
	char part[200];

	if (!begins_with(ref, "#/") || strlen(ref) >= sizeof part)
		return NULL;
	for (ref += 2; root && *ref;) {
		size_t n = strcspn(ref, "/");

		snprintf(part, sizeof part, "%.*s", (int)n, ref);
		root = json_object_get(root, part);
		ref += n + (ref[n] == '/');
	}
	return root;
}

/* --- arguments --- */

enum { CHECK_STEPS_MAX = 200000, CHECK_DEPTH_MAX = 32, REFS_MAX = 16 };

struct check {
	const json_t *root;
	int           steps;
	char          path[200]; /* "entities[2].name" */
	struct err   *e;
};

static int printf_like(2, 3) set_check_error(struct check *c, const char *fmt, ...)
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
static size_t check_path_append(struct check *c, const char *key, size_t index)
{
	size_t n = strlen(c->path);

	if (key)
		snprintf(c->path + n, sizeof c->path - n, "%s%.60s", n ? "." : "", key);
	else
		snprintf(c->path + n, sizeof c->path - n, "[%zu]", index);
	return n;
}

/* What is not checked does not pass: a program would put many values before the one that is refused. */
static int count_check_step(struct check *c)
{
	if (++c->steps > CHECK_STEPS_MAX)
		return set_check_error(c, "the arguments have more than %d values to check; send fewer at once",
				       CHECK_STEPS_MAX);
	return 0;
}

/* --- one value --- */

/* The server judges a type that is not known here. A real that is whole, as all from 2^53 on, is an integer, too. */
static bool value_has_type(const json_t *value, const char *type)
{
	double real = json_real_value(value);

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (strcmp(type, types[i].name) == 0)
			return (types[i].of & BIT(json_typeof(value))) ||
			       (types[i].of == BIT(JSON_INTEGER) && json_is_real(value) &&
				(real >= 0x1p53 || real <= -0x1p53 || (double)(long long)real == real));
	return true;
}

static int check_type(struct check *c, const json_t *value, const json_t *type)
{
	const char *name = json_string_value(type), *one;

	if (name)
		return value_has_type(value, name) ? 0 : set_check_error(c, "expected %.20s", name);
	for (size_t i = 0; i < json_array_size(type); i++) {
		if (count_check_step(c) < 0)
			return -1;
		if (!(one = json_string_value(json_array_get(type, i))) || value_has_type(value, one))
			return 0;
	}
	return json_array_size(type) ? set_check_error(c, "expected another type; see its signature") : 0;
}

static int check_enum(struct check *c, const json_t *value, const json_t *list)
{
	char   known[160] = "";
	size_t n = 0;

	if (!json_array_size(list) || json_is_array(value) || json_is_object(value))
		return 0;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));

		if (count_check_step(c) < 0)
			return -1;
		if (json_equal(value, json_array_get(list, i)))
			return 0;
		if (text && n < sizeof known)
			n += (size_t)snprintf(known + n, sizeof known - n, "%s%.40s", n ? ", " : "", text);
	}
	return set_check_error(c, "expected one of %.150s", *known ? known : "the values of its schema");
}

/* --- what is in it --- */

static int check_value(struct check *c, const json_t *value, const json_t *schema, int depth);

static int check_items(struct check *c, const json_t *list, const json_t *items, int depth)
{
	size_t  i, cut;
	json_t *item;

	if (!json_is_object(items))
		return 0;
	json_array_foreach((json_t *)list, i, item) {
		cut = check_path_append(c, NULL, i);
		if (check_value(c, item, items, depth + 1) < 0)
			return -1;
		c->path[cut] = 0;
	}
	return 0;
}

static int check_required(struct check *c, const json_t *object, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *name = json_string_value(json_array_get(list, i));

		if (count_check_step(c) < 0)
			return -1;
		if (name && !json_object_get(object, name))
			return set_check_error(c, "the argument %.60s is missing", name);
	}
	return 0;
}

static int check_keys(struct check *c, const json_t *object, const json_t *schema, int depth)
{
	const json_t *known  = json_object_get(schema, "properties"),
		     *more   = json_object_get(schema, "additionalProperties");
	bool          closed = json_is_false(more) && !json_object_get(schema, "patternProperties");
	const char   *key;
	json_t       *value;
	size_t        cut;

	json_object_foreach((json_t *)object, key, value) {
		const json_t *of = json_object_get(known, key);

		if (!of && closed)
			return set_check_error(c, "there is no argument %.60s", key);
		cut = check_path_append(c, key, 0);
		if (check_value(c, value, of ? of : json_is_object(more) ? more : NULL, depth + 1) < 0)
			return -1;
		c->path[cut] = 0;
	}
	return 0;
}

/*
 * References may form a cycle, so at most REFS_MAX are followed. One that leads to nothing here is for the server to
 * judge.
 */
static int schema_resolve(struct check *c, const json_t **schema)
{
	const char *ref;

	for (int i = 0; (ref = json_string_value(json_object_get(*schema, "$ref"))); i++) {
		if (i == REFS_MAX)
			return set_check_error(
				c, "cannot be checked: more than %d references of its schema follow each other",
				REFS_MAX);
		*schema = schema_follow_ref(c->root, ref);
	}
	return 0;
}

static int check_value(struct check *c, const json_t *value, const json_t *schema, int depth)
{
	if (schema_resolve(c, &schema) < 0)
		return -1;
	if (!json_is_object(schema))
		return 0;
	if (count_check_step(c) < 0)
		return -1;
	if (depth > CHECK_DEPTH_MAX)
		return set_check_error(c, "nested more than %d deep", CHECK_DEPTH_MAX);
	if (check_type(c, value, json_object_get(schema, "type")) < 0 ||
	    check_enum(c, value, json_object_get(schema, "enum")) < 0)
		return -1;
	if (json_is_array(value))
		return check_items(c, value, json_object_get(schema, "items"), depth);
	if (!json_is_object(value))
		return 0;
	return check_required(c, value, json_object_get(schema, "required")) < 0 ? -1
										 : check_keys(c, value, schema, depth);
}

int argument_check(const json_t *arguments, const json_t *schema, struct err *e)
{
	struct check c = { .root = schema, .e = e };

	return check_value(&c, arguments, schema, 0);
}

/* --- a signature --- */

enum { SIGNATURE_STEPS_MAX = 400, SIGNATURE_DEPTH_MAX = 6, CHOICES_MAX = 8, TEXT_MAX = 40 };

struct writer {
	FILE         *out;
	const json_t *root;
	int           steps;
};

bool signature_is_identifier(const char *name)
{
	char identifier[128];

	if (!*name || strlen(name) > sizeof identifier - 8)
		return false;
	make_python_identifier(name, identifier, sizeof identifier - 2);
	return strcmp(identifier, name) == 0;
}

static void put_schema_type(struct writer *w, const json_t *schema, int depth);

/* A value as JSON; true, false and null as Python says them. */
static void put_python_value(struct writer *w, const json_t *value)
{
	size_t len;
	char  *text;

	if (json_is_boolean(value) || json_is_null(value)) {
		fputs(json_is_null(value) ? "None" : json_is_true(value) ? "True" : "False", w->out);
		return;
	}
	text = json_dump_exact(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII, &len);
	fputs(text && len <= TEXT_MAX ? text : "...", w->out);
	free(text);
}

static void put_type_name(struct writer *w, const char *name, const json_t *schema, int depth)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (strcmp(types[i].name, name) == 0) {
			fputs(types[i].python, w->out);
			if (strcmp(name, "array") == 0 && json_is_object(json_object_get(schema, "items"))) {
				putc('[', w->out);
				put_schema_type(w, json_object_get(schema, "items"), depth + 1);
				putc(']', w->out);
			}
			return;
		}
	fputs("Any", w->out);
}

static void put_literal_choices(struct writer *w, const json_t *values)
{
	fputs("Literal[", w->out);
	for (size_t i = 0; i < json_array_size(values) && i < CHOICES_MAX; i++) {
		fputs(i ? ", " : "", w->out);
		put_python_value(w, json_array_get(values, i));
	}
	fputs(json_array_size(values) > CHOICES_MAX ? ", ...]" : "]", w->out);
}

/* list: names of types, or schemas. */
static void put_type_union(struct writer *w, const json_t *list, const json_t *schema, int depth)
{
	for (size_t i = 0; i < json_array_size(list) && i < CHOICES_MAX; i++) {
		const json_t *one = json_array_get(list, i);

		fputs(i ? " | " : "", w->out);
		if (json_is_string(one))
			put_type_name(w, json_string_value(one), schema, depth);
		else
			put_schema_type(w, one, depth + 1);
	}
	if (!json_array_size(list))
		fputs("Any", w->out);
}

static void put_schema_type(struct writer *w, const json_t *schema, int depth)
{
	const char   *ref  = json_string_value(json_object_get(schema, "$ref"));
	const json_t *type = json_object_get(schema, "type"), *any = json_object_get(schema, "anyOf");
	const json_t *choices = json_object_get(schema, "enum");

	if (!any)
		any = json_object_get(schema, "oneOf");
	if (depth > SIGNATURE_DEPTH_MAX || ++w->steps > SIGNATURE_STEPS_MAX)
		fputs("Any", w->out);
	else if (ref)
		put_schema_type(w, schema_follow_ref(w->root, ref), depth + 1);
	else if (json_array_size(choices))
		put_literal_choices(w, choices);
	else if (json_is_string(type))
		put_type_name(w, json_string_value(type), schema, depth);
	else
		put_type_union(w, json_is_array(type) ? type : any, schema, depth);
}

static bool is_required_argument(const json_t *schema, const char *name)
{
	const json_t *list = json_object_get(schema, "required");

	for (size_t i = 0; i < json_array_size(list) && i < SIGNATURE_STEPS_MAX; i++)
		if (json_is_string(json_array_get(list, i)) &&
		    strcmp(json_string_value(json_array_get(list, i)), name) == 0)
			return true;
	return false;
}

static void put_argument(struct writer *w, const char *name, const json_t *schema, bool required)
{
	const json_t *preset = json_object_get(schema, "default");

	if (signature_is_identifier(name)) {
		fprintf(w->out, "%s: ", name);
	} else {
		json_t *text = json_string(name);

		fputs("**{", w->out);
		put_python_value(w, text);
		fputs("}: ", w->out);
		json_decref(text);
	}
	put_schema_type(w, schema, 0);
	if (!required) {
		fputs(" = ", w->out);
		put_python_value(w, preset ? preset : json_null());
	}
}

static void put_signature_arguments(struct writer *w, const json_t *input)
{
	const json_t *properties = json_object_get(input, "properties");
	const char   *name;
	json_t       *schema;
	bool          any = false;

	putc('(', w->out);
	for (int required = 1; required >= 0; required--)
		json_object_foreach((json_t *)properties, name, schema) {
			if (++w->steps > SIGNATURE_STEPS_MAX || is_required_argument(input, name) != required)
				continue;
			fputs(any ? ", " : "", w->out);
			put_argument(w, name, schema, required);
			any = true;
		}
	putc(')', w->out);
}

static void put_result_type(struct writer *w, const json_t *output)
{
	fputs(" -> ", w->out);
	if (!output) {
		fputs("Any", w->out);
		return;
	}
	w->root = output;
	w->steps = 0;
	put_schema_type(w, output, 0);
}

/* A signature that is too long loses its middle, and keeps its result. */
static void cut_long_signature(char *text, size_t len)
{
	char tail[80];
	char *arrow = memrchr(text, '>', len);

	if (len <= SIGNATURE_MAX)
		return;
	snprintf(tail, sizeof tail, ", ...) -%.60s", arrow ? arrow : "> Any");
	len = SIGNATURE_MAX - sizeof tail;
	while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--;
	strcpy(text + len, tail);
}

char *signature_make(const json_t *input, const json_t *output)
{
	char         *text = NULL;
	size_t        len;
	struct writer w = { .out = open_memstream(&text, &len), .root = input };

	if (!w.out)
		return NULL;
	put_signature_arguments(&w, input);
	put_result_type(&w, output);
	fclose(w.out);
	if (text)
		cut_long_signature(text, len);
	return text;
}
