/*
 * dotenv.h - the file .env: NAME=VALUE a line, read and never executed.
 *
 *   # a comment, and empty lines             are skipped
 *   [export] NAME = VALUE                    blanks around each of them are dropped
 *   VALUE without quotes                     up to the end of the line, or to a # after a blank
 *   'VALUE'                                  as it is, up to the next '; may span lines
 *   "VALUE"                                  likewise, with \n \t \r \" \\ \$
 *
 * $NAME and `command` are not expanded. Such files have lines for other programs, in the syntax of those: a line that cannot be
 * read is reported with its number and its name, if it has one, and reading goes on with the next.
 *
 * Pure.
 */
#pragma once
#include "err.h"

struct dotenv {
	const char *at, *end;
	unsigned    line; /* number of the line of the last row; 0: none was read yet */
	unsigned    next; /* number of the next line; the first one is 1 */
	char       *name, *value; /* of the last row; owned. name is "" if none could be read, value is NULL after DOTENV_BAD */
};

enum dotenv_step { DOTENV_END, DOTENV_ROW, DOTENV_BAD };

/* bytes: borrowed until dotenv_done(). */
void dotenv_init(struct dotenv *d, const char *bytes, size_t len);
void dotenv_done(struct dotenv *d);
/* BAD: *e says what is wrong with line d->line. If memory is short the reading ends, with *e of kind LIMIT. */
must_use enum dotenv_step dotenv_next(struct dotenv *d, struct err *e);
#define scoped_dotenv scoped(dotenv_done) struct dotenv
