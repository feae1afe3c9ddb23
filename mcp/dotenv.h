/*
 * dotenv.h - the file .env: NAME=VALUE a line, read and never executed.
 *
 *   # a comment, and empty lines             are passed over
 *   [export] NAME = VALUE                    blanks around all of them are dropped
 *   VALUE of no quotes                       up to the end of the line, or to a # behind a blank
 *   'VALUE'                                  as it stands, up to the next '; may span lines
 *   "VALUE"                                  likewise, with \n \t \r \" \\ \$
 *
 * $NAME and `command` stand for themselves. Such files hold lines of other
 * programs, in other programs' spelling: what cannot be read is told with its
 * line and its name, if it has one, and the next line can be.
 *
 * Pure.
 */
#pragma once
#include "err.h"

struct dotenv {
	const char *at, *end;
	unsigned    line; /* of the row that was read last; 0: none yet */
	unsigned    next; /* the one to be read; 1 is the first */
	char       *name, *value; /* of that row; owned. name is "" where none could be read, value NULL after DOTENV_BAD */
};

enum dotenv_step { DOTENV_END, DOTENV_ROW, DOTENV_BAD };

/* bytes: borrowed until dotenv_done(). */
void dotenv_init(struct dotenv *d, const char *bytes, size_t len);
void dotenv_done(struct dotenv *d);
/* BAD: *e says what is wrong with d->line. Memory that is short ends it, with *e of kind LIMIT. */
must_use enum dotenv_step dotenv_next(struct dotenv *d, struct err *e);
#define scoped_dotenv scoped(dotenv_done) struct dotenv
