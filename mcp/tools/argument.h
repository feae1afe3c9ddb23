/*
 * argument.h - rows of field.h for what models send: the arguments of a tool.
 *
 * Models make mistakes that can be mended: an unknown argument is only a warning; null means that the argument is not
 * given; a number, a switch, a list or an object may come as a text; a size without a unit is in MiB. The mended
 * value is then checked by its row, as any other setting.
 */
#pragma once
#include "field_json.h"

/* Rows have false, true or UNLISTED. */
enum need {
	OPTIONAL = false,
	REQUIRED = true,
	UNLISTED, /* accepted, and not in the schema: only older programs send it */
};

struct argument {
	/* offset: not used; preset: FIELD_UNSET if it is not fixed; doc: for models, which pay for each word */
	struct field field;
	enum need    need;
	const char  *manual; /* doc for the manual; NULL: as in doc */
};

/*
 * New reference; its root has the type object. An object of a FIELD_ROWS must have the key of the first row of its
 * table.
 */
json_t *arguments_schema(const struct argument *rows);

/*
 * Every argument of the rows, checked and in its one form (sizes as bytes, numbers rounded to a thousandth); null if
 * it was not given. A new reference; texts are appended to the list warnings, which may be NULL. NULL with *e.
 */
must_use json_t *arguments_parse(const struct argument *rows, const json_t *given, json_t *warnings, struct err *e);
