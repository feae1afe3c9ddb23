/*
 * language.h - the languages of programs, as each interface names them. Pure.
 */
#pragma once
#include "defs.h"

enum { LANGUAGE_NAMES = 8, LANGUAGE_IDS = 6 };

struct language {
	const char *name;                  /* as Piston lists it */
	const char *aliases[LANGUAGE_NAMES];
	const char *package;               /* of a rootfs, which has its version */
	const char *preset;                /* that version, where the package is not known */
	const char *interpreter;           /* what executes the file */
	bool        is_native;             /* brig itself runs a program of one file, warm if it can */
	const char *file;                  /* its name in /workspace; not main.py, which is that of a run of brig's */
	int         judge0[LANGUAGE_IDS];  /* ids, the newest first */
	const char *judge0_name;
};

extern const struct language languages[]; /* ends with a NULL name */

/* NULL: there is no such language. */
const struct language *language_find(const char *name);
const struct language *language_find_judge0(int64_t id);
/* Does what Piston calls a version mean this one? "*", "3.x", "3.11", "3.11.2". */
bool                   language_has_version(const char *version, const char *wanted);
