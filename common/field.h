/*
 * field.h - one row per setting: its name, its type, its bounds, what it means.
 *
 * A table of rows over one struct. Here is what needs no JSON: values that are
 * typed, bounds, the manual's list. field_json.h reads the same rows from JSON
 * and makes the schema. Who needs more of a row has it in one of his own:
 * option.h for a command line, argument.h for what models send, settings.h for
 * who said it.
 *
 * Texts and lists are borrowed from what they are read from, which must outlive
 * the struct.
 */
#pragma once
#include "err.h"

#include <stdio.h>

enum field_type {
	FIELD_COUNT,  /* uint64_t; JSON integer */
	FIELD_SIZE,   /* uint64_t bytes; JSON integer or "64M" */
	FIELD_MS,     /* uint64_t milliseconds; JSON integer, as text seconds: "1.5" */
	FIELD_MILLI,  /* uint64_t thousandths; JSON number 0.5 */
	FIELD_BOOL,   /* bool; as text true or false, 1 or 0, yes or no, on or off */
	FIELD_STR,    /* const char *; max = longest, in bytes */
	FIELD_NAME,   /* const char *; see text_is_name() */
	FIELD_CHOICE, /* unsigned; one of choices[], NULL-terminated; preset = index */
	FIELD_TEXTS,  /* const char *[max + 1], NULL-terminated; from text alone, which adds one */
	FIELD_LIST,   /* const json_t *: array of strings, at most max, each at most 4096 bytes */
	FIELD_WORDS,  /* const json_t *: array of min to max strings, each as long as a message can be */
	FIELD_MAP,    /* const json_t *: object of at most max strings */
	FIELD_OBJECT, /* const json_t *: an object; its owner decodes it; with table[], each of its values is an object of these rows */
	FIELD_ROWS,   /* const json_t *: array of objects, at most max; their owner decodes each by table[] */
	FIELD_MIXED,  /* const json_t *: array of texts and objects, at most max; their owner decodes them, objects by table[] */
	FIELD_TABLE,  /* nested struct at offset, described by table[] */
	FIELD_NOTE,   /* accepted, checked to be a string, not kept ("comment") */
};

#define FIELD_ANY    UINT64_MAX /* as max: without bound */
#define FIELD_UNSAID UINT64_MAX /* as preset, of a row with a bound: none */

/* Tables end with a row whose name is NULL. */
struct field {
	const char         *name;
	enum field_type     type;
	size_t              offset;
	uint64_t            min, max, preset; /* a preset outside of the bounds: nobody can say it, and it means nothing was said */
	const char         *doc;
	const char *const  *choices;
	const struct field *table;
};

const struct field *field_find(const struct field *table, const char *name);
bool                field_is_number(const struct field *f);
bool                field_has_preset(const struct field *f);
void                fields_preset(const struct field *table, void *into);

/* One setting as it is typed: "64M", "1.5". The error names value and range as they are typed; the caller, the setting. */
must_use int field_from_text(const struct field *f, const char *text, void *into, struct err *e);
/* A number that is in its bounds, which are told in text's or JSON's unit. */
must_use int field_set_number(const struct field *f, uint64_t x, bool is_text, void *into, struct err *e);

/* "0.25": a number of the row, in JSON's unit, and as field_from_text() reads it: seconds. */
void field_print_value(const struct field *f, uint64_t value, char *buf, size_t len);
void field_print_text(const struct field *f, uint64_t value, char *buf, size_t len);
void field_print(const struct field *f, const void *from, FILE *out); /* what the struct has, as field_from_text() reads it; no lists */

const char *field_words(const struct field *f); /* what JSON has: "true or false" */
const char *field_like(const struct field *f);  /* what a text is: "seconds, like 30 or 0.5" */
const char *field_arg(const struct field *f);   /* what a value is called behind its option: "SIZE"; "" of FIELD_BOOL */

/* In mdoc: a list of all rows as JSON has them; the sentence about one row's bounds, choices and preset, if there is one. */
void fields_print_mdoc(const struct field *table, FILE *out);
void field_print_bounds(const struct field *f, bool is_text, FILE *out);
