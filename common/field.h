/*
 * field.h - one row per setting: its name, its type, its bounds, what it means.
 *
 * A table of rows describes one struct. This header has what needs no JSON:
 * values read from text, bounds, the list for the manual. field_json.h reads the
 * same rows from JSON and makes the schema. Other headers embed a row in a larger
 * one: option.h for the command line, argument.h for arguments that models send,
 * settings.h for settings that can come from several sources.
 *
 * Texts and lists are borrowed from the input, which must outlive the struct.
 */
#pragma once
#include "err.h"

#include <stdio.h>

enum field_type {
	FIELD_COUNT,  /* uint64_t; JSON integer */
	FIELD_SIZE,   /* uint64_t bytes; JSON integer or "64M" */
	FIELD_MS,     /* uint64_t milliseconds; JSON integer or a text with its unit, "5m"; as text alone seconds or with a unit: "1.5", "90s" */
	FIELD_MILLI,  /* uint64_t thousandths; JSON number 0.5 */
	FIELD_BOOL,   /* bool; as text true or false, 1 or 0, yes or no, on or off */
	FIELD_STR,    /* const char *; max = longest, in bytes */
	FIELD_NAME,   /* const char *; see text_is_name() */
	FIELD_CHOICE, /* unsigned; one of choices[], NULL-terminated; preset = index */
	FIELD_TEXTS,  /* const char *[max + 1], NULL-terminated; from text only, each call appends one; field_json.h must not get such a row */
	FIELD_LIST,   /* const json_t *: array of strings, at most max, each at most 4096 bytes */
	FIELD_WORDS,  /* const json_t *: array of min to max strings of any length */
	FIELD_MAP,    /* const json_t *: object of at most max strings */
	FIELD_OBJECT, /* const json_t *: an object, decoded by the caller; with table[], the schema says that each value is an object of these rows */
	FIELD_ROWS,   /* const json_t *: array of objects, at most max; the caller decodes each by table[] */
	FIELD_MIXED,  /* const json_t *: array of texts and objects, at most max; decoded by the caller, objects by table[] */
	FIELD_TABLE,  /* nested struct at offset, described by table[] */
	FIELD_NOTE,   /* accepted, checked to be a string, not kept ("comment") */
};

#define FIELD_ANY    UINT64_MAX /* as max: no bound */
#define FIELD_UNSET UINT64_MAX /* as preset of a row that has a bound: there is no preset */

/* Tables end with a row whose name is NULL. */
struct field {
	const char         *name;
	enum field_type     type;
	size_t              offset;
	uint64_t            min, max, preset; /* preset outside min..max: no input can give it, so it means "not set" */
	const char         *doc;
	const char *const  *choices;
	const struct field *table;
};

/* Where the value is in the struct. */
static inline void *field_at(const struct field *f, void *into)
{
	return (char *)into + f->offset;
}

const struct field *field_find(const struct field *table, const char *name);
bool                field_is_number(const struct field *f);
bool                field_has_preset(const struct field *f);
void                fields_set_presets(const struct field *table, void *into);

/* Sets one value from text, like "64M" or "1.5". The error names the value and the range, not the setting: the caller adds its name. */
must_use int field_from_text(const struct field *f, const char *text, void *into, struct err *e);
/* Refuses a number that is outside its bounds. is_text: the error has the units of texts (seconds), else those of JSON (milliseconds). */
must_use int field_set_number(const struct field *f, uint64_t x, bool is_text, void *into, struct err *e);

/* Print a number of the row, like "0.25": field_print_value() in JSON's unit, field_print_text() as field_from_text() reads it. */
void field_print_value(const struct field *f, uint64_t value, char *buf, size_t len);
void field_print_text(const struct field *f, uint64_t value, char *buf, size_t len);
void field_print(const struct field *f, const void *from, FILE *out); /* the struct's value, as field_from_text() reads it; nothing for lists */

const char *field_type_text(const struct field *f); /* the type in JSON: "true or false" */
const char *field_expected_text(const struct field *f);  /* the form of a text: "seconds, like 30 or 0.5" */
const char *field_arg_placeholder(const struct field *f);   /* the placeholder in --help: "SIZE"; "" for FIELD_BOOL */

/* For the manual, in mdoc: a list of all rows with their JSON types; a sentence about one row's bounds, choices and preset, if it has any. */
void fields_print_mdoc(const struct field *table, FILE *out);
void field_print_bounds(const struct field *f, bool is_text, FILE *out);
