/* fuzz_recipe.c - any bytes as a recipe, NUL, one that it extends: no row leads out of the tree, and rows are what they are written as */
#include "fuzz_rows.h"
#include "generate.h"
#include "recipe.h"
#include "tree.h"

/* What a row means does not depend on its reason, nor on blanks. */
static void must_read_row_the_same(const struct recipe_row *row, const char *between)
{
	struct recipe_row again;
	char              text[2100];
	json_t           *json;

	snprintf(text, sizeof text, "%s%s%s # why", row->key, *row->value ? between : "", row->value);
	json = json_string(text);
	must_about(text, json);
	recipe_row_read(json, &again);
	must_about(text, strcmp(again.key, row->key) == 0 && strcmp(again.value, row->value) == 0);
	json_decref(json);
}

static void must_hold(const struct recipe *r)
{
	const struct {
		const json_t *list;
		const char   *between;
	} lists[] = {
		{ r->packages, NULL }, { r->omit, NULL },      { r->prune, "" },      { r->keep, "" },       { r->dirs, "" },
		{ r->links, " -> " },  { r->generate, " = " }, { r->compile, "" },    { r->prune_last, "" },
	};
	struct recipe_row row;
	size_t            j;

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		recipe_foreach(lists[i].list, row, j) {
			must_about(row.key, !lists[i].between || tree_path_is_plain(row.key));
			must_about(row.key, lists[i].between || (*row.key != '-' && !strpbrk(row.key, "/, =~")));
			must_about(row.value, !*row.value == !(lists[i].between && *lists[i].between));
			must_read_row_the_same(&row, lists[i].between ? lists[i].between : "");
		}
	recipe_foreach(r->sources, row, j)
		must_about(row.key, strncmp(row.key, "deb ", 4) == 0 && !strchr(row.key, '[') && !*row.value);
	recipe_foreach(r->generate, row, j)
		must_about(row.value, generator_find(row.value));
}

static void must_read_the_same(const struct recipe *r)
{
	json_t       *first = rows_to_json(recipe_fields, r), *second;
	char         *text  = json_dumps(first, JSON_COMPACT);
	scoped_recipe again = { 0 };
	struct err    e     = { 0 };

	must(text);
	must_about(e.text, recipe_parse(&again, "fuzz", text, strlen(text), &e) == 0);
	second = rows_to_json(recipe_fields, &again);
	must_about(text, json_equal(first, second));
	json_decref(first);
	json_decref(second);
	free(text);
}

static bool parse(struct recipe *ret, const char *name, const char *text)
{
	struct err e = { 0 };

	if (recipe_parse(ret, name, text, strlen(text), &e) == 0)
		return true;
	must_name_row(recipe_fields, &e);
	must(!ret->source);
	return false;
}

/* What the base has and is not taken back is there, before the recipe's own, and nothing of it is omitted. */
static void must_extend(const struct recipe *r, const struct recipe *base, size_t own)
{
	struct recipe_row row;
	size_t            all = json_array_size(r->packages), i, at = 0;

	must(all >= own && all <= json_array_size(base->packages) + own);
	for (i = 0; i < json_array_size(base->packages); i++)
		at += at < all && json_equal(json_array_get(r->packages, at), json_array_get(base->packages, i));
	must(at >= all - own);
	recipe_foreach(r->omit, row, i)
		must_about(row.key, !recipe_has_package(r, row.key));
	must(strlen(r->sha256) == DIGEST_HEX && strcmp(r->sha256, base->sha256) != 0);
}

static bool extend(struct recipe *r, const char *text)
{
	scoped_recipe base = { 0 };
	struct err    e    = { 0 };
	size_t        own  = json_array_size(r->packages);

	if (!parse(&base, "base", text) || base.extends)
		return false;
	if (recipe_extend(r, &base, &e) < 0) {
		must_name_row(recipe_fields, &e);
		return false;
	}
	must_extend(r, &base, own);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char         *text = take_text(&data, &size), *base = take_text(&data, &size);
	scoped_recipe r    = { 0 };

	if (parse(&r, "fuzz", text)) {
		must_keep_bounds(recipe_fields, &r);
		must_hold(&r);
		must_read_the_same(&r);
		if (!r.extends || extend(&r, base)) {
			must(r.suite && json_array_size(r.packages) > 0);
			must_keep_bounds(recipe_fields, &r);
			must_hold(&r);
			must_read_the_same(&r);
		}
	}
	free(text);
	free(base);
	return 0;
}
