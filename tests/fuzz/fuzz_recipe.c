/* fuzz_recipe.c - any bytes as a recipe: no row leads out of the tree, and rows are what they are written as */
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
		{ r->packages, NULL }, { r->prune, "" },       { r->dirs, "" },       { r->links, " -> " },
		{ r->generate, " = " }, { r->compile, "" },    { r->prune_last, "" },
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_recipe r = { 0 };
	struct err    e = { 0 };

	if (recipe_parse(&r, "fuzz", data, size, &e) < 0) {
		must_name_row(recipe_fields, &e);
		must(!r.source);
		return 0;
	}
	must(r.suite && json_array_size(r.packages) > 0);
	must_keep_bounds(recipe_fields, &r);
	must_hold(&r);
	must_read_the_same(&r);
	return 0;
}
