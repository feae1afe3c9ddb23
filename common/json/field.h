/*
 * field.h - one row per setting: read it, check it, describe it.
 *
 * A table of rows over one struct. From the same row come the JSON parser, the
 * reader of command-line texts, the bounds, the JSON schema and the manual's
 * list. Strings and lists are borrowed from the JSON value, which must outlive
 * the struct.
 */
#pragma once
#include "err.h"

#include <jansson.h>
#include <stdio.h>

enum field_type {
	FIELD_COUNT,  /* uint64_t; JSON integer */
	FIELD_SIZE,   /* uint64_t bytes; JSON integer or "64M" */
	FIELD_MS,     /* uint64_t milliseconds; JSON integer, as text seconds: "1.5" */
	FIELD_MILLI,  /* uint64_t thousandths; JSON number 0.5 */
	FIELD_BOOL,   /* bool */
	FIELD_STR,    /* const char *; max = longest, in bytes */
	FIELD_NAME,   /* const char *; see text_is_name() */
	FIELD_CHOICE, /* unsigned; one of choices[], NULL-terminated; preset = index */
	FIELD_LIST,   /* const json_t *: array of strings, at most max, each at most 4096 bytes */
	FIELD_WORDS,  /* const json_t *: array of min to max strings, each as long as a message can be */
	FIELD_OBJECT, /* const json_t *: an object; its owner decodes it, by table[] if there is one */
	FIELD_ROWS,   /* const json_t *: array of objects, at most max; their owner decodes each by table[] */
	FIELD_TABLE,  /* nested struct at offset, described by table[] */
	FIELD_NOTE,   /* accepted, checked to be a string, not kept ("comment") */
};

struct field {
	const char         *name;
	enum field_type     type;
	size_t              offset;
	uint64_t            min, max, preset; /* a preset outside of the bounds: nobody can say it, and it means nothing was said */
	const char         *doc;
	const char *const  *choices;
	const struct field *table; /* rows end with a NULL name */
};

/* Tables end with a row whose name is NULL. */
must_use int fields_decode(const struct field *table, const json_t *from, void *into, struct err *e);
void         fields_preset(const struct field *table, void *into);

/* One setting from a command line: "64M", "1.5". The error names value and range, as the command line writes them; the caller, the option. */
must_use int field_from_text(const struct field *f, const char *text, void *into, struct err *e);
const struct field *field_find(const struct field *table, const char *name);

/* "0.25..64 (default 1)", in the row's own unit. */
void field_print_value(const struct field *f, uint64_t value, char *buf, size_t len);
void field_print_text(const struct field *f, uint64_t value, char *buf, size_t len); /* as field_from_text() reads it: seconds */

/* A number as fields_decode() takes it; new reference. */
json_t *field_json(const struct field *f, uint64_t value);

json_t *fields_schema(const struct field *table); /* new reference */
int     fields_print_mdoc(const struct field *table, FILE *out);
