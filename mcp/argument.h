/*
 * argument.h - rows of field.h for what models send: the arguments of a tool.
 *
 * Lenient where they are: an unknown argument is a warning, null is "not said",
 * a number, a switch, a list or an object may come in a text, and a size without
 * a unit is MiB. Then the row decides, as it does for people.
 */
#pragma once
#include "field_json.h"

struct argument {
	struct field field; /* offset does not matter; preset: FIELD_UNSAID where that is not for the row to say; doc: for models, who pay for each word */
	bool         must;
	const char  *manual; /* the same for the manual; NULL: as in doc */
};

/* New reference; root type object. An object of a FIELD_ROWS must have the first row of its table. */
json_t *arguments_schema(const struct argument *rows);

/*
 * Every argument of the rows, checked and brought into its one form (sizes as
 * bytes, numbers as numbers to the thousandth); null where it was not said.
 * warnings: a list of texts, added to. NULL with *e.
 */
must_use json_t *arguments_take(const struct argument *rows, const json_t *given, json_t *warnings, struct err *e);
