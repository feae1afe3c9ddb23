/*
 * runner.h - the guest runner: where it lies in a rootfs, how it is told what to do, and where it reports
 *
 *   python3 -I RUNNER MODE FD[,TOOLS] IMPORTS MODULES CALLS --MAIN ARG...
 *
 * MAIN is the program's path below the working directory, /workspace, and empty for main.py; of a program that works
 * elsewhere it begins with "/workspace/".
 * IMPORTS and MODULES (what may be imported at run time, and what the static
 * check allows) are names between commas, or "*": anything. CALLS, of which the
 * check warns, may be empty. None of it is a boundary: the program can do to its
 * runner what it likes.
 */
#pragma once
#include "err.h"

#include <jansson.h>

#define RUNNER_PATH "usr/lib/brig/guest.pyc" /* below the root */

enum {
	RUNNER_FD        = 5, /* on which it reports; the program's own are 0 to 2 */
	TOOLS_FD         = 4, /* the socket to the tools of a program that has some */
	RUNNER_WORDS_MAX = 9,
};

struct runner_lists {
	const json_t *imports, *modules, *calls; /* of texts without commas; NULL: none was said */
	const char   *main;                      /* NULL: main.py */
	bool          tools;
};

struct runner_words {
	const char *word[RUNNER_WORDS_MAX + 1]; /* NULL at the end */
	char        fd[8];
	char       *list[4]; /* heap, among the words */
};

/* Must not be moved afterwards. After failure, too, runner_words_done() is to be called. */
must_use int runner_words_build(struct runner_words *ret, const char *mode, const struct runner_lists *lists, struct err *e);
void         runner_words_done(struct runner_words *w);
#define scoped_runner_words scoped(runner_words_done) struct runner_words
