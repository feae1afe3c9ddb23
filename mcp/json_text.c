#define _GNU_SOURCE
#include "json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print(FILE *out, const json_t *value);

static void print_real(FILE *out, double value)
{
	char buf[40];
	int  digits = 15;

	do
		snprintf(buf, sizeof buf, "%.*g", digits, value);
	while (strtod(buf, NULL) != value && ++digits <= 17);
	fprintf(out, "%s%s", buf, strpbrk(buf, ".e") ? "" : ".0");
}

/* Escapes are jansson's affair. */
static void print_text(FILE *out, const json_t *text)
{
	char *dumped = json_dumps(text, JSON_ENCODE_ANY | JSON_COMPACT);

	fputs(dumped ? dumped : "null", out);
	free(dumped);
}

static void print_list(FILE *out, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		putc(i ? ',' : '[', out);
		print(out, json_array_get(list, i));
	}
	fputs(json_array_size(list) ? "]" : "[]", out);
}

static void print_key(FILE *out, const char *key)
{
	json_t *text = json_string(key);

	print_text(out, text);
	json_decref(text);
}

static void print_object(FILE *out, const json_t *object)
{
	const char *key, *before = "{";
	json_t     *value;

	json_object_foreach((json_t *)object, key, value) {
		fputs(before, out);
		print_key(out, key);
		putc(':', out);
		print(out, value);
		before = ",";
	}
	fputs(json_object_size(object) ? "}" : "{}", out);
}

static void print(FILE *out, const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		print_object(out, value);
		return;
	case JSON_ARRAY:
		print_list(out, value);
		return;
	case JSON_REAL:
		print_real(out, json_real_value(value));
		return;
	case JSON_STRING:
	case JSON_INTEGER:
	case JSON_TRUE:
	case JSON_FALSE:
	case JSON_NULL:
		print_text(out, value);
		return;
	}
}

char *json_text(const json_t *value)
{
	char  *text = NULL;
	size_t len;
	FILE  *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	print(out, value);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}
