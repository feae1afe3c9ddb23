/*
 * option.h - the command line as rows: name, argument, meaning, what to do.
 *
 * --name VALUE and --name=VALUE, -l VALUE; options end at the first word that
 * is none, or behind "--". --help is there without a row.
 */
#pragma once
#include "err.h"

#include <stdio.h>

struct option_row {
	const char *name;
	char        letter; /* 0: none */
	const char *arg;    /* what --help calls the value; NULL: a switch */
	const char *doc;
	int (*set)(void *into, const struct option_row *row, const char *value, struct err *e);
};

enum { OPTIONS_FAILED = -1, OPTIONS_HELP = -2 };

/* Returns how many words of argv (from argv[1]) were options. Rows end with a NULL name. */
must_use int options_parse(const struct option_row *rows, int argc, char **argv, void *into, struct err *e);
void         options_print(const struct option_row *rows, FILE *out);
