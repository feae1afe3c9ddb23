/*
 * recipe.h - what a rootfs is made of, as rows.
 *
 * A recipe is a JSON file whose lists hold one text per row. A row may end in
 * " # reason", which is for people. Every row is checked when the recipe is
 * read: a text that cannot be a path, a pattern or the name of a package is
 * refused here, with the name of the file, the list and the row.
 */
#pragma once
#include "digest.h"
#include "field_json.h"

struct recipe {
	char          name[64];
	/* of the file, of the recipes that it extends, and of what guest_add_to_digest() and wheels_load() add */
	char          sha256[DIGEST_HEX + 1];
	const char   *description;
	const char   *extends;
	const char   *suite; /* of Debian: "bookworm" */
	uint64_t      size_max;
	/* recipe_load() makes the two paths relative to the recipe's own directory */
	const char   *requirements, *wheels, *index;
	const json_t *sources, *packages, *omit, *prune, *keep, *dirs, *links, *generate, *compile, *prune_last;
	json_t       *source; /* owns all texts */
};

#define RECIPE_MAX   (256 * 1024)
#define RECIPE_PIP   "python3-pip-whl" /* the package whose pip installs requirements; added where it is needed */
#define RECIPE_DEPTH 8 /* the most recipes that extend each other */
extern const struct field recipe_fields[];

/* Parses one file. A recipe with "extends" is complete only after recipe_extend(). */
must_use int recipe_parse(struct recipe *ret, const char *name, const void *bytes, size_t len, struct err *e);
/* Puts the base's rows before r's own. r inherits a suite that it does not name; a missing size_max is the base's and
 * the preset together. */
must_use int recipe_extend(struct recipe *r, const struct recipe *base, struct err *e);
/* Loads a recipe with all that it extends. name: that of a recipe in the folder, or a file that ends in ".json". */
must_use int recipe_load(struct recipe *ret, const char *folder, const char *name, struct err *e);
void         recipe_done(struct recipe *r);
/* The rows of sources as lines, to be freed; NULL when memory is short. */
char        *recipe_source_lines(const struct recipe *r);
bool         recipe_has_package(const struct recipe *r, const char *name);
#define scoped_recipe scoped(recipe_done) struct recipe

/* A row in its two halves. Only rows of "links" and "generate" have a second half; in others it is empty. */
struct recipe_row {
	char key[1024], value[1024];
	char between; /* '>' for " -> ", '=' for " = ", 0: there is no second half */
};
void recipe_row_read(const json_t *row, struct recipe_row *ret); /* only for rows of a parsed recipe */
#define recipe_foreach(list, row, i) \
	for ((i) = 0; (i) < json_array_size(list) && (recipe_row_read(json_array_get(list, i), &(row)), true); (i)++)
