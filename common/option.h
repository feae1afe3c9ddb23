/*
 * option.h - the command line as rows: each a field, and what only an option has.
 *
 * --name VALUE and --name=VALUE, -l VALUE; options end at the first word that
 * is none, behind "--", or behind one whose row says so. --help is there without a row.
 */
#pragma once
#include "field.h"

struct option_row {
	struct field field; /* name: behind "--" */
	char         letter; /* 0: none */
	const char  *arg;    /* what --help calls the value; NULL: as field_arg() does. Of FIELD_BOOL: not NULL if a value may stand behind '=' */
	/* NULL: the field is set. value of FIELD_BOOL: "true" when none was said. The error says of which option it is. */
	int (*set)(void *into, const struct option_row *row, const char *value, struct err *e);
	bool ends; /* the last: the words behind it belong to the program, as with Python's -c */
};

/* Rows of the two usual kinds. */
#define OPTION_SWITCH(word, letter, at, doc)    { { word, FIELD_BOOL, at, 0, 1, 0, doc, NULL, NULL }, letter, NULL, NULL, false }
#define OPTION_TEXT(word, letter, at, arg, doc) { { word, FIELD_STR, at, 0, FIELD_ANY, 0, doc, NULL, NULL }, letter, arg, NULL, false }
#define OPTION_END                              { { 0 }, 0, NULL, NULL, false }

enum { OPTIONS_FAILED = -1, OPTIONS_HELP = -2 };

/* Returns how many words of argv (from argv[1]) were options. Rows end with a NULL name. */
must_use int options_parse(const struct option_row *rows, int argc, char **argv, void *into, struct err *e);

void        options_print(const struct option_row *rows, FILE *out);
void        option_print(const struct option_row *row, FILE *out); /* its line, without the line's end */
const char *option_arg(const struct option_row *row);              /* "SIZE"; "": it takes none */
