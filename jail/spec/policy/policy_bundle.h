/*
 * policy_bundle.h - every text that decides a syscall filter, gathered.
 *
 * The file that a profile names, the files it includes, and the profile's own
 * lines. `key` finds the compiled filter in the cache; the texts are parsed only
 * when it is not there. Pure: files are read by the caller's function.
 */
#pragma once
#include "err.h"

#include <jansson.h>

#define POLICY_SOURCES_MAX 16
#define POLICY_SOURCE_MAX  (64 * 1024)
#define POLICY_EXTEND      "policy_extend" /* the name of the profile's own lines in messages */

struct policy_bundle {
	struct policy_source {
		char   name[64];  /* "python" */
		char   where[80]; /* "python.policy", for messages */
		char  *text;
		size_t len;
		bool   extends; /* the profile's lines, not a file */
	} source[POLICY_SOURCES_MAX];
	size_t n;
	char  *key; /* version, machine, digest of the tables, then every text with its length: equal keys mean equal filters */
	size_t key_len;
};

/* Reads NAME.policy into malloc'ed memory, which the bundle then owns. */
typedef int policy_read_fn(void *context, const char *name, char **text, size_t *len, struct err *e);

/* extend: a list of lines, or NULL. On failure *ret is untouched and nothing is to be freed. */
must_use int policy_bundle_build(struct policy_bundle *ret, const char *name, const json_t *extend, policy_read_fn *read,
				 void *context, struct err *e);
void policy_bundle_done(struct policy_bundle *b);
#define scoped_policy_bundle scoped(policy_bundle_done) struct policy_bundle

const struct policy_source *policy_bundle_find(const struct policy_bundle *b, const char *name);
