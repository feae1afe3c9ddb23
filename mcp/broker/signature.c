#define _GNU_SOURCE
#include "signature.h"

#include "exact.h"
#include "server_entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 400, DEPTH_MAX = 6, CHOICES_MAX = 8, TEXT_MAX = 40, REF_MAX = 200 };

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
	python_identifier(name, identifier, sizeof identifier - 2);
	return strcmp(identifier, name) == 0;
}

const json_t *schema_follow(const json_t *root, const char *ref)
{
	char part[REF_MAX];

	if (strncmp(ref, "#/", 2) != 0 || strlen(ref) >= REF_MAX)
		return NULL;
	for (ref += 2; root && *ref;) {
		size_t n = strcspn(ref, "/");

		snprintf(part, sizeof part, "%.*s", (int)n, ref);
		root = json_object_get(root, part);
		ref += n + (ref[n] == '/');
	}
	return root;
}

static const struct {
	const char *schema, *python;
} types[] = {
	{ "string", "str" }, { "integer", "int" }, { "number", "float" }, { "boolean", "bool" }, { "null", "None" }, { "array", "list" }, { "object", "dict" },
};

static void put_type(struct writer *w, const json_t *schema, int depth);

/* A value as JSON; true, false and null as Python says them. */
static void put_value(struct writer *w, const json_t *value)
{
	size_t len;
	char  *text;

	if (json_is_boolean(value) || json_is_null(value)) {
		fputs(json_is_null(value) ? "None" : json_is_true(value) ? "True" : "False", w->out);
		return;
	}
	text = exact_dump(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII, &len);
	fputs(text && len <= TEXT_MAX ? text : "...", w->out);
	free(text);
}

static void put_name(struct writer *w, const char *name, const json_t *schema, int depth)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (strcmp(types[i].schema, name) == 0) {
			fputs(types[i].python, w->out);
			if (strcmp(name, "array") == 0 && json_is_object(json_object_get(schema, "items"))) {
				putc('[', w->out);
				put_type(w, json_object_get(schema, "items"), depth + 1);
				putc(']', w->out);
			}
			return;
		}
	fputs("Any", w->out);
}

static void put_choices(struct writer *w, const json_t *values)
{
	fputs("Literal[", w->out);
	for (size_t i = 0; i < json_array_size(values) && i < CHOICES_MAX; i++) {
		fputs(i ? ", " : "", w->out);
		put_value(w, json_array_get(values, i));
	}
	fputs(json_array_size(values) > CHOICES_MAX ? ", ...]" : "]", w->out);
}

/* list: names of types, or schemas. */
static void put_union(struct writer *w, const json_t *list, const json_t *schema, int depth)
{
	for (size_t i = 0; i < json_array_size(list) && i < CHOICES_MAX; i++) {
		const json_t *one = json_array_get(list, i);

		fputs(i ? " | " : "", w->out);
		if (json_is_string(one))
			put_name(w, json_string_value(one), schema, depth);
		else
			put_type(w, one, depth + 1);
	}
	if (!json_array_size(list))
		fputs("Any", w->out);
}

static void put_type(struct writer *w, const json_t *schema, int depth)
{
	const char   *ref  = json_string_value(json_object_get(schema, "$ref"));
	const json_t *type = json_object_get(schema, "type"), *any = json_object_get(schema, "anyOf");

	if (!any)
		any = json_object_get(schema, "oneOf");
	if (depth > DEPTH_MAX || ++w->steps > STEPS_MAX)
		fputs("Any", w->out);
	else if (ref)
		put_type(w, schema_follow(w->root, ref), depth + 1);
	else if (json_array_size(json_object_get(schema, "enum")))
		put_choices(w, json_object_get(schema, "enum"));
	else if (json_is_string(type))
		put_name(w, json_string_value(type), schema, depth);
	else
		put_union(w, json_is_array(type) ? type : any, schema, depth);
}

static bool is_required(const json_t *schema, const char *name)
{
	const json_t *list = json_object_get(schema, "required");

	for (size_t i = 0; i < json_array_size(list) && i < STEPS_MAX; i++)
		if (json_is_string(json_array_get(list, i)) && strcmp(json_string_value(json_array_get(list, i)), name) == 0)
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
		put_value(w, text);
		fputs("}: ", w->out);
		json_decref(text);
	}
	put_type(w, schema, 0);
	if (!required) {
		fputs(" = ", w->out);
		put_value(w, preset ? preset : json_null());
	}
}

static void put_arguments(struct writer *w, const json_t *input)
{
	const json_t *properties = json_object_get(input, "properties");
	const char   *name;
	json_t       *schema;
	bool          any = false;

	putc('(', w->out);
	for (int required = 1; required >= 0; required--)
		json_object_foreach((json_t *)properties, name, schema) {
			if (++w->steps > STEPS_MAX || is_required(input, name) != required)
				continue;
			fputs(any ? ", " : "", w->out);
			put_argument(w, name, schema, required);
			any = true;
		}
	putc(')', w->out);
}

static void put_result(struct writer *w, const json_t *output)
{
	fputs(" -> ", w->out);
	if (!output) {
		fputs("Any", w->out);
		return;
	}
	w->root = output;
	w->steps = 0;
	put_type(w, output, 0);
}

/* A signature that is too long loses its middle, and keeps its result. */
static void cut(char *text, size_t len)
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
	put_arguments(&w, input);
	put_result(&w, output);
	fclose(w.out);
	if (text)
		cut(text, len);
	return text;
}
