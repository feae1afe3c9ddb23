/*
 * shape.h - the keys of a JSON object that brig makes, and their types.
 *
 * Settings have presets (field.h), these objects have none: a missing key is as
 * wrong as an unknown one. Clients and tests check the server's answers with these
 * rows, and the manual prints them.
 */
#pragma once
#include "err.h"

#include <jansson.h>
#include <stdio.h>

enum shape_type {
	SHAPE_TEXT,
	SHAPE_COUNT,  /* a whole number that is not negative */
	SHAPE_INT,    /* a whole number */
	SHAPE_NUMBER,
	SHAPE_BOOL,
	SHAPE_ANY,
	SHAPE_TEXTS,  /* a list of texts */
	SHAPE_COUNTS, /* an object of any keys, each with a count */
	SHAPE_OBJECT, /* an object whose keys are not checked here */
	SHAPE_TABLE,  /* an object as in table[] */
	SHAPE_ROWS,   /* a list of objects as in table[] */
};

enum shape_need {
	SHAPE_MUST,
	SHAPE_NULL, /* must be there, and may be null */
	SHAPE_MAY,  /* may be missing, and is not null */
};

/* Tables end with a row whose name is NULL. */
struct shape {
	const char         *name;
	enum shape_type     type;
	enum shape_need     need;
	const char         *doc;
	const struct shape *table;
};

must_use int shape_check(const struct shape *table, const json_t *object, struct err *e);
int          shape_print_mdoc(const struct shape *table, FILE *out);
