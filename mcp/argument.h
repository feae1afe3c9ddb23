/*
 * argument.h - one row for each argument of a tool: its JSON schema, and the check that names what is wrong.
 *
 * Like field.h for what models send: lenient where they are (an unknown
 * argument is a warning, null is "not said", a number may come as text where
 * that is not ambiguous), strict about ranges, and every refusal is a sentence
 * that says what to write instead.
 */
#pragma once
#include "err.h"

#include <jansson.h>

enum argument_type {
	ARGUMENT_TEXT,
	ARGUMENT_COUNT,  /* a whole number */
	ARGUMENT_NUMBER,
	ARGUMENT_BOOL,
	ARGUMENT_TEXTS,  /* a list of texts */
	ARGUMENT_MAP,    /* an object of texts */
	ARGUMENT_SIZE,   /* "128m", "1g", or a number of MiB */
	ARGUMENT_CHOICE, /* one of choices[] */
};

struct argument {
	const char        *name;
	enum argument_type type;
	bool               must;
	double             min, max;  /* of numbers; of texts and lists max is their length; max 0: unbounded */
	const char        *preset;    /* as JSON text, for the schema; NULL: none */
	const char        *doc;
	const char *const *choices;
};

json_t *arguments_schema(const struct argument *rows); /* new reference; root type object */

/*
 * Every argument of the rows, checked and brought into its one form (sizes as
 * bytes, numbers as numbers); null where it was not said. warnings: a list of
 * texts, added to. NULL with *e.
 */
must_use json_t *arguments_take(const struct argument *rows, const json_t *given, json_t *warnings, struct err *e);
