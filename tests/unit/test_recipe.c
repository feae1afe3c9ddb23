#include "recipe.h"
#include "tap.h"

#define HEAD "{\"suite\":\"bookworm\",\"packages\":[\"dash\"]"

static const struct {
	const char   *name, *json;
	enum err_kind kind;
	const char   *says;
} rows[] = {
	/* sentence, file, answer, beginning of the error */
	{ "the smallest recipe is accepted", HEAD "}", ERR_NONE, "" },
	{ "a recipe needs a suite", "{\"packages\":[\"dash\"]}", ERR_BAD_SPEC, "suite: missing" },
	{ "a recipe needs a package", "{\"suite\":\"bookworm\"}", ERR_BAD_SPEC, "packages: missing" },
	{ "an unknown key is refused", HEAD ",\"hooks\":[]}", ERR_BAD_SPEC, "hooks: no such setting" },
	{ "a duplicate key is refused", HEAD ",\"suite\":\"sid\"}", ERR_PROTOCOL, "line 1" },
	{ "a suite with a slash is refused", "{\"suite\":\"a/b\",\"packages\":[\"dash\"]}", ERR_BAD_SPEC, "suite: \"a/b\" is no name" },
	{ "a size beyond its range is refused", HEAD ",\"size_max\":\"1T\"}", ERR_BAD_SPEC, "size_max: 1T is outside 1..64G" },
	{ "a number in a list is refused", HEAD ",\"dirs\":[1]}", ERR_BAD_SPEC, "dirs[0]: expected text, not 1" },
	{ "a row may end in its reason", HEAD ",\"dirs\":[\"/a # for tests\"]}", ERR_NONE, "" },
	{ "a package cannot be an option", "{\"suite\":\"b1\",\"packages\":[\"-x\"]}", ERR_BAD_SPEC, "packages: \"-x\"" },
	{ "a package cannot be a list", "{\"suite\":\"b1\",\"packages\":[\"a1,b1\"]}", ERR_BAD_SPEC, "packages: \"a1,b1\"" },
	{ "a package cannot be a file", "{\"suite\":\"b1\",\"packages\":[\"./a.deb\"]}", ERR_BAD_SPEC, "packages: \"./a.deb\"" },
	{ "the way up is no path", HEAD ",\"dirs\":[\"/a/../b\"]}", ERR_BAD_SPEC, "dirs: \"/a/../b\": not a plain" },
	{ "a path that ends in a slash is refused", HEAD ",\"dirs\":[\"/a/\"]}", ERR_BAD_SPEC, "dirs: \"/a/\"" },
	{ "a double slash is refused", HEAD ",\"dirs\":[\"/a//b\"]}", ERR_BAD_SPEC, "dirs: \"/a//b\"" },
	{ "a relative path is refused", HEAD ",\"dirs\":[\"a\"]}", ERR_BAD_SPEC, "dirs: \"a\"" },
	{ "the root cannot be pruned", HEAD ",\"prune\":[\"/\"]}", ERR_BAD_SPEC, "prune: \"/\"" },
	{ "an empty row is refused", HEAD ",\"prune\":[\"\"]}", ERR_BAD_SPEC, "prune: \"\"" },
	{ "a row that is only a reason is refused", HEAD ",\"prune\":[\" # why\"]}", ERR_BAD_SPEC, "prune: \" # why\"" },
	{ "a newline in a row is refused", HEAD ",\"links\":[\"/a -> b\\nc\"]}", ERR_BAD_SPEC, "links: a row with a character that cannot be shown" },
	{ "a link needs a target", HEAD ",\"links\":[\"/a -> \"]}", ERR_BAD_SPEC, "links: \"/a -> \"" },
	{ "a link to nothing but a reason is refused", HEAD ",\"links\":[\"/a -> # why\"]}", ERR_BAD_SPEC, "links: \"/a -> # why\"" },
	{ "a generator must be known", HEAD ",\"generate\":[\"/a = b\"]}", ERR_BAD_SPEC, "generate: \"/a = b\"" },
	{ "a generator is not linked to", HEAD ",\"generate\":[\"/a -> empty\"]}", ERR_BAD_SPEC, "generate: \"/a -> empty\"" },
	{ "a link is not made by a generator", HEAD ",\"links\":[\"/a = b\"]}", ERR_BAD_SPEC, "links: \"/a = b\"" },
	{ "a generator must be named", HEAD ",\"generate\":[\"/a\"]}", ERR_BAD_SPEC, "generate: \"/a\"" },
	{ "a recipe that extends another need not be whole", "{\"extends\":\"base\"}", ERR_NONE, "" },
	{ "what it extends is a name and no path", "{\"extends\":\"../base\"}", ERR_BAD_SPEC, "extends: \"../base\" is no name" },
	{ "a package cannot be wanted and omitted", HEAD ",\"omit\":[\"dash # why\"]}", ERR_BAD_SPEC, "omit: \"dash\": is in packages" },
	{ "an omitted package cannot be two lines", HEAD ",\"omit\":[\"a1\\nb1\"]}", ERR_BAD_SPEC, "omit: a row with a character that cannot be shown" },
	{ "there is nothing to keep without a base", HEAD ",\"prune\":[\"/a\"],\"keep\":[\"/a\"]}", ERR_BAD_SPEC, "keep: \"/a\": it extends no" },
	{ "a source is a line of sources.list", HEAD ",\"sources\":[\"deb http://m.test/debian trixie main # why\"]}", ERR_NONE, "" },
	{ "a source cannot name a key", HEAD ",\"sources\":[\"deb [trusted=yes] http://m.test/debian trixie main\"]}", ERR_BAD_SPEC, "sources: \"deb [trusted=yes] " },
	{ "nor can one behind the suite", HEAD ",\"sources\":[\"deb http://m.test/debian trixie main [x]\"]}", ERR_BAD_SPEC, "sources: \"deb http://m.test/debian trixie main [x]\"" },
	{ "a source has main", HEAD ",\"sources\":[\"deb http://m.test/debian trixie contrib\"]}", ERR_BAD_SPEC, "sources: \"deb http://m.test/debian trixie contrib\": expected deb URI SUITE main" },
	{ "a source has binary packages", HEAD ",\"sources\":[\"deb-src http://m.test/debian trixie main\"]}", ERR_BAD_SPEC, "sources: \"deb-src " },
	{ "a source is an address", HEAD ",\"sources\":[\"deb trixie main\"]}", ERR_BAD_SPEC, "sources: \"deb trixie main\"" },
	{ "a source cannot be two lines", HEAD ",\"sources\":[\"deb http://m.test/debian trixie main\\ndeb x\"]}", ERR_BAD_SPEC, "sources: a row with a character that cannot be shown" },
	{ "the last list is checked as the first", HEAD ",\"prune_last\":[\"..\"]}", ERR_BAD_SPEC, "prune_last: \"..\"" },
};

static void check_row_halves(void)
{
	static const struct {
		const char *text, *key, *value;
	} halves[] = {
		{ "/a", "/a", "" },
		{ "/a # b -> c", "/a", "" },
		{ "/a -> ../b # why = what", "/a", "../b" },
		{ "/a = empty", "/a", "empty" },
		{ "/a#b", "/a#b", "" },
		{ "/a #b", "/a #b", "" },
		{ "/a #", "/a", "" },
		{ "/a #b #", "/a #b", "" },
		{ "/a -> # why", "/a ->", "" },
		{ "/a = # why", "/a =", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(halves); i++) {
		json_t           *json = json_string(halves[i].text);
		struct recipe_row row;

		recipe_row_read(json, &row);
		tap_ok(strcmp(row.key, halves[i].key) == 0 && strcmp(row.value, halves[i].value) == 0, "\"%s\" is \"%s\" and \"%s\"", halves[i].text, row.key, row.value);
		json_decref(json);
	}
}

static void check_long_row(void)
{
	scoped_recipe r = { 0 };
	struct err    e = { 0 };
	char          text[2200] = HEAD ",\"dirs\":[\"/";
	size_t        n = strlen(text);

	memset(text + n, 'a', 2000);
	strcpy(text + n + 2000, "\"]}");
	tap_ok(recipe_parse(&r, "x", text, strlen(text), &e) < 0 && strstr(e.text, "at most 1023"), "a row of 2000 bytes is refused");
}

#define BASE "{\"suite\":\"b1\",\"size_max\":\"7M\",\"packages\":[\"dash\"],\"prune\":[\"/a\",\"/b # why\"],\"dirs\":[\"/d\"]}"

static const struct {
	const char   *name, *json;
	enum err_kind kind;
	const char   *is; /* the joined recipe as JSON, or the beginning of the error */
} joins[] = {
	{ "rows come after those of the base", "{\"extends\":\"base\",\"packages\":[\"sed\"],\"prune\":[\"/c\"]}", ERR_NONE,
	  "b1 275775488 [\"dash\",\"sed\"] [\"/a\",\"/b # why\",\"/c\"]" },
	{ "what is said again holds", "{\"extends\":\"base\",\"suite\":\"b2\",\"size_max\":9}", ERR_NONE, "b2 9 [\"dash\"] [\"/a\",\"/b # why\"]" },
	{ "a size of its own bounds all of it", "{\"extends\":\"base\",\"size_max\":\"8M\"}", ERR_NONE, "b1 8388608 [\"dash\"] [\"/a\",\"/b # why\"]" },
	{ "a row of prune is taken back", "{\"extends\":\"base\",\"keep\":[\"/b # it is needed\"]}", ERR_NONE, "b1 275775488 [\"dash\"] [\"/a\"]" },
	{ "a row that the base has not cannot be taken back", "{\"extends\":\"base\",\"keep\":[\"/d\"]}", ERR_BAD_SPEC, "keep: \"/d\": base has no such" },
	{ "a package of the base is omitted", "{\"extends\":\"base\",\"packages\":[\"sed\"],\"omit\":[\"dash # why\"]}", ERR_NONE,
	  "b1 275775488 [\"sed\"] [\"/a\",\"/b # why\"]" },
	{ "a package that is omitted and wanted again is refused", "{\"extends\":\"base\",\"packages\":[\"dash\"],\"omit\":[\"dash\"]}", ERR_BAD_SPEC,
	  "omit: \"dash\": is in packages" },
	{ "without its only package a recipe is empty", "{\"extends\":\"base\",\"omit\":[\"dash\"]}", ERR_BAD_SPEC, "packages: missing" },
};

static void print_joined(const struct recipe *r, char *text, size_t len)
{
	char *packages = json_dumps(r->packages, JSON_COMPACT), *prune = json_dumps(r->prune, JSON_COMPACT);

	snprintf(text, len, "%s %llu %s %s", r->suite, (unsigned long long)r->size_max, packages, prune);
	free(packages);
	free(prune);
}

static void check_join(size_t i)
{
	scoped_recipe base = { 0 }, r = { 0 };
	struct err    e         = { 0 };
	char          text[400] = "", own[DIGEST_HEX + 1];

	if (recipe_parse(&base, "base", BASE, strlen(BASE), &e) < 0 || recipe_parse(&r, "x", joins[i].json, strlen(joins[i].json), &e) < 0) {
		tap_ok(false, "%s: %s", joins[i].name, e.text);
		return;
	}
	strcpy(own, r.sha256);
	if (recipe_extend(&r, &base, &e) == 0)
		print_joined(&r, text, sizeof text);
	else
		snprintf(text, sizeof text, "%.*s", (int)strlen(joins[i].is), e.text);
	tap_is(text, joins[i].is, joins[i].name);
	tap_ok(e.kind == joins[i].kind && (e.kind != ERR_NONE || strcmp(own, r.sha256) != 0), "... %s", e.kind ? "of that kind" : "and it is another recipe than alone");
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		scoped_recipe r  = { 0 };
		struct err    e  = { 0 };
		bool          ok = (recipe_parse(&r, "x", rows[i].json, strlen(rows[i].json), &e) == 0) == (rows[i].kind == ERR_NONE);

		if (!tap_ok(ok && e.kind == rows[i].kind && strncmp(e.text, rows[i].says, strlen(rows[i].says)) == 0, "%s", rows[i].name))
			printf("#   %s: %s\n", err_kind_name(e.kind), e.text);
	}
	check_row_halves();
	check_long_row();
	for (size_t i = 0; i < ARRAY_LEN(joins); i++)
		check_join(i);
	return tap_done();
}
