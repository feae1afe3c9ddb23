/*
 * option.h - the command line as rows: each is a field, and what only an option has.
 *
 * Forms: --name VALUE, --name=VALUE, -l VALUE and -lVALUE. Options end before the
 * first word that is not an option, after "--", and after an option whose row
 * has ends set. --help and -h need no row.
 */
#pragma once
#include "field.h"

struct option_row {
	struct field field; /* its name is the option's, without "--" */
	char         letter; /* 0: none */
	const char  *arg;    /* what --help calls the value; NULL: field_arg_placeholder(). FIELD_BOOL: not NULL allows --name=VALUE */
	/* Called instead of field_from_text(), unless NULL. A FIELD_BOOL option without a value passes "true". Its error must name the option. */
	int (*set)(void *into, const struct option_row *row, const char *value, struct err *e);
	bool ends; /* the last option: the words after it belong to the program, as with Python's -c */
};

/* Rows of the two most frequent kinds. */
#define OPTION_SWITCH(word, letter, at, doc)    { { word, FIELD_BOOL, at, 0, 1, 0, doc, NULL, NULL }, letter, NULL, NULL, false }
#define OPTION_TEXT(word, letter, at, arg, doc) { { word, FIELD_STR, at, 0, FIELD_ANY, 0, doc, NULL, NULL }, letter, arg, NULL, false }
#define OPTION_END                              { { 0 }, 0, NULL, NULL, false }

enum { OPTIONS_FAILED = -1, OPTIONS_HELP = -2 };

/* Returns how many words of argv, from argv[1] on, were options, or one of the values above. Rows end with a NULL name. */
must_use int options_parse(const struct option_row *rows, int argc, char **argv, void *into, struct err *e);

void        options_print(const struct option_row *rows, FILE *out);
void        option_print(const struct option_row *row, FILE *out); /* its line of --help, without a newline */
const char *option_arg_placeholder(const struct option_row *row);              /* "SIZE"; "": the option takes no value */
