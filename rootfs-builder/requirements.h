/*
 * requirements.h - a requirements file for pip in which every line names one version and its possible hashes.
 *
 * Anything else is refused: options, addresses, ranges of versions. pip gets a
 * file that is written from what was parsed here, so that the two cannot read it
 * differently. Owns all its texts.
 */
#pragma once
#include "digest.h"

struct requirement {
	char  *name; /* as pip compares names: lower case, one '-' between words */
	char  *version;
	char  *marker; /* the text after ';', a condition under which the line applies; or NULL */
	char (*hash)[DIGEST_HEX + 1];
	size_t n_hashes, line;
};

struct requirements {
	struct requirement *row;
	size_t              n;
	char               *text; /* the rows again, for pip */
	size_t              len;
};

#define REQUIREMENTS_MAX (4 * MIB)

/* Errors name the line. Changes text. */
must_use int requirements_parse(struct requirements *ret, char *text, struct err *e);
must_use int requirements_read(struct requirements *ret, const char *path, struct err *e);
void         requirements_done(struct requirements *r);
#define scoped_requirements scoped(requirements_done) struct requirements

/* The first len bytes of text as a name in the form that pip compares; malloc'ed, or NULL when memory is short. */
char *requirement_name(const char *text, size_t len);
