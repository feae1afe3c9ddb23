/*
 * recipe.h - what a rootfs is made of, as rows.
 *
 * A recipe is a JSON file whose lists hold one text per row. A row may end in
 * " # reason", which is for people. Every row is checked when the recipe is
 * read: what a path, a pattern or a package name cannot be is refused here,
 * with the name of the file, the list and the row.
 */
#pragma once
#include "digest.h"
#include "field_json.h"

struct recipe {
	char          name[64];
	char          sha256[DIGEST_HEX + 1]; /* of the file's bytes, and of those that it extends */
	const char   *description;
	const char   *extends;
	const char   *suite; /* of Debian: "bookworm" */
	uint64_t      size_max;
	const char   *requirements, *wheels, *index; /* files and folder from the recipe's own directory, once recipe_load() was there */
	const json_t *packages, *omit, *prune, *keep, *dirs, *links, *generate, *compile, *prune_last;
	json_t       *source; /* owns all texts */
};

#define RECIPE_MAX   (256 * 1024)
#define RECIPE_PIP   "python3-pip-whl" /* the package whose pip installs requirements; it comes along by itself */
#define RECIPE_DEPTH 8 /* so many recipes on top of each other */
extern const struct field recipe_fields[];

/* One file. With "extends" it is whole only after recipe_extend(). */
must_use int recipe_parse(struct recipe *ret, const char *name, const void *bytes, size_t len, struct err *e);
/* The base's rows come before r's own; a suite that r does not name is the base's, a size that it does not bound the base's and the preset. */
must_use int recipe_extend(struct recipe *r, const struct recipe *base, struct err *e);
/* With all that it extends: NAME in the folder, or a file when the text ends in ".json" or has a slash. */
must_use int recipe_load(struct recipe *ret, const char *folder, const char *name, struct err *e);
void         recipe_done(struct recipe *r);
bool         recipe_has_package(const struct recipe *r, const char *name);
#define scoped_recipe scoped(recipe_done) struct recipe

/* A row in its two halves; the second is empty where the list has none ("links" and "generate" do). */
struct recipe_row {
	char key[1024], value[1024];
	char between; /* '>' of " -> ", '=' of " = ", 0 when there is no second half */
};
void recipe_row_read(const json_t *row, struct recipe_row *ret); /* only for rows of a parsed recipe */
#define recipe_foreach(list, row, i) \
	for ((i) = 0; (i) < json_array_size(list) && (recipe_row_read(json_array_get(list, i), &(row)), true); (i)++)
