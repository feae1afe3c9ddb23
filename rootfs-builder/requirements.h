/*
 * requirements.h - a requirements file of pip's in which every line names one version and the hashes that it may have.
 *
 * Only that: no option, no address, no version that is left open. What pip gets
 * is written anew from what was read here, so the two cannot read it differently.
 * Owns all its texts.
 */
#pragma once
#include "digest.h"

struct requirement {
	char  *name; /* as pip compares names: lower case, one '-' between words */
	char  *version;
	char  *marker; /* behind the ';': where it holds only; or NULL */
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

/* Errors name the line. text is changed. */
must_use int requirements_parse(struct requirements *ret, char *text, struct err *e);
must_use int requirements_read(struct requirements *ret, const char *path, struct err *e);
void         requirements_done(struct requirements *r);
#define scoped_requirements scoped(requirements_done) struct requirements

/* len bytes of a name as pip compares them; malloc'ed, or NULL when memory is short. */
char *requirement_name(const char *text, size_t len);
