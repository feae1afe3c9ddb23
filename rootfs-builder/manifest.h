/*
 * manifest.h - what a tree holds, byte for byte, and the name that follows from it.
 *
 * The digest of a tree is the SHA-256 of this text, one line per entry, in the
 * order of the bytes of the paths:
 *
 *     brig-tree 1\n
 *     dir MODE PATH\n
 *     file MODE SIZE SHA256 PATH\n
 *     link PATH<tab>TARGET\n
 *
 * MODE is four octal digits; PATH is absolute. Times, owners, the recipe and
 * the versions of packages are not part of it: the same content has the same
 * name, whatever it was made from. Lint has refused the control
 * characters that could forge a line.
 */
#pragma once
#include "digest.h"
#include "tree.h"

#include <jansson.h>

#define MANIFEST_FORMAT 1
#define MANIFEST_MAX    (256 * MIB)

struct manifest {
	struct tree tree;
	char (*sha256)[DIGEST_HEX + 1]; /* one for each entry; "" unless a file */
	uint64_t bytes; /* of all files */
	char     digest[DIGEST_HEX + 1];
};

/* Scans and hashes. */
must_use int manifest_make(int root, struct manifest *ret, struct err *e);
must_use int manifest_parse(const void *bytes, size_t len, struct manifest *ret, struct err *e);
void         manifest_done(struct manifest *m);
#define scoped_manifest scoped(manifest_done) struct manifest

struct manifest_origin {
	const char   *name, *recipe_sha256, *architecture;
	const json_t *packages; /* [{"name", "version"}] */
};
/* The file; new reference or NULL. */
json_t *manifest_to_json(const struct manifest *m, const struct manifest_origin *from);

/* "0755"; what a link has is the kernel's business, so it has none here. */
void manifest_mode(const struct tree_entry *entry, char text[8]);
extern const char *const manifest_types[]; /* by enum tree_type */
