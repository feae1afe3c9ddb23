/*
 * manifest.h - the list of a tree's entries with their hashes, and the digest that names the tree.
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
 * name, whatever it was made from. No path can forge a line, because lint has
 * refused control characters.
 */
#pragma once
#include "digest.h"
#include "tree.h"

#include <jansson.h>

#define MANIFEST_FORMAT 1
#define MANIFEST_MAX    (256 * MIB)

struct manifest {
	struct tree tree;
	char (*sha256)[DIGEST_HEX + 1]; /* one for each entry; "" if it is not a file */
	uint64_t bytes; /* of all files */
	char     digest[DIGEST_HEX + 1];
};

/* Scans the tree, hashes its files and computes the digest. */
must_use int manifest_make(int root, struct manifest *ret, struct err *e);
must_use int manifest_parse(const void *bytes, size_t len, struct manifest *ret, struct err *e);
void         manifest_done(struct manifest *m);
#define scoped_manifest scoped(manifest_done) struct manifest

struct manifest_origin {
	const char   *name, *recipe_sha256, *architecture;
	const json_t *packages; /* [{"name", "version"}] */
};
/* The content of manifest.json; a new reference, or NULL. */
json_t *manifest_to_json(const struct manifest *m, const struct manifest_origin *from);

/* "0755". A link has no mode of its own, so it is always "0777". */
void manifest_print_mode(const struct tree_entry *entry, char text[8]);
extern const char *const manifest_types[]; /* by enum tree_type */
