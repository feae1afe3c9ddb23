#include "recipe.h"

#include "file.h"
#include "trust.h"
#include "generate.h"
#include "sources.h"
#include "text.h"
#include "tree.h"
#include "wire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(struct recipe, member)
/* clang-format off */
const struct field recipe_fields[] = {
	/* setting      type        where             least, most, preset, meaning */
	{ "comment",      FIELD_NOTE, 0,                0, 8192,     0,
	  "For people; brig-rootfs does not read it" },
	{ "description",  FIELD_STR,  AT(description),  0, 200,      0,         "What the rootfs is for, in one line" },
	{ "extends",      FIELD_NAME, AT(extends),      0, 63,       0,
	  "A recipe of brig's own folder; its rows come before these" },
	{ "suite",        FIELD_NAME, AT(suite),        0, 63,       0,
	  "The Debian release the packages come from, by its code name" },
	{ "sources",      FIELD_LIST, AT(sources),      0, 64,       0,
	  "deb URI SUITE main: where the packages come from if the machine's apt has no source of the suite" },
	{ "size_max",     FIELD_SIZE, AT(size_max),     1, 64 * GIB, 256 * MIB,
	  "The build fails when all files together are larger; what extends another has 256M more than that one" },
	{ "packages",     FIELD_LIST, AT(packages),     0, 1024,     0,
	  "Debian packages; what they depend on comes along, what they recommend does not" },
	{ "requirements", FIELD_STR,  AT(requirements), 0, 1023,     0,
	  "A requirements file of pip's, each line with a version and hashes: "
	  "what is installed with pip, at build time" },
	{ "wheels",       FIELD_STR,  AT(wheels),       0, 1023,     0,
	  "The directory that has the wheels of requirements" },
	{ "index",        FIELD_STR,  AT(index),        0, 1023,     0,
	  "The address of a package index that has them" },
	{ "omit",         FIELD_LIST, AT(omit),         0, 1024,     0,
	  "Packages that stay away though others depend on them, or the extended recipe names them" },
	{ "prune",        FIELD_LIST, AT(prune),        0, 1024,     0,
	  "Patterns of paths that are removed, directories with all below them; * and ? stop at a slash" },
	{ "keep",         FIELD_LIST, AT(keep),         0, 1024,     0,
	  "Rows of prune that the extended recipe has and this one takes back" },
	{ "dirs",         FIELD_LIST, AT(dirs),         0, 1024,     0,
	  "Directories that are made, with their parents" },
	{ "links",        FIELD_LIST, AT(links),        0, 1024,     0,         "PATH -> TARGET: symbolic links" },
	{ "generate",     FIELD_LIST, AT(generate),     0, 1024,     0,
	  "PATH = GENERATOR: files whose content brig-rootfs writes" },
	{ "compile",      FIELD_LIST, AT(compile),      0, 64,       0,
	  "Directories in which every .py gets its .pyc" },
	{ "prune_last",   FIELD_LIST, AT(prune_last),   0, 1024,     0,
	  "Like prune, but after generate and compile: what was only needed to build" },
	{ 0 },
};
/* clang-format on */

/* --- rows --- */

/* Copies one half of a row, without the blanks around it. */
static void copy_trimmed(char half[1024], const char *from, size_t len)
{
	while (len && *from == ' ')
		from++, len--;
	while (len && from[len - 1] == ' ')
		len--;
	snprintf(half, 1024, "%.*s", (int)len, from);
}

static const struct {
	const char *text;
	char        name;
} splits[] = { { " -> ", '>' }, { " = ", '=' } };

void recipe_row_read(const json_t *row, struct recipe_row *ret)
{
	const char *text = json_string_value(row), *cut;
	const char *end  = strstr(text, " #");
	size_t      len;

	while (end && end[2] && end[2] != ' ') /* the reason. A row may end in " #" without one */
		end = strstr(end + 1, " #");
	len = end ? (size_t)(end - text) : strlen(text);
	copy_trimmed(ret->key, text, len);
	ret->value[0] = 0;
	ret->between  = 0;
	for (size_t i = 0; i < ARRAY_LEN(splits); i++) {
		cut = strstr(text, splits[i].text);
		/* in "/a -> # why" the last blank of " -> " belongs to the reason */
		if (!cut || cut + strlen(splits[i].text) > text + len)
			continue;
		copy_trimmed(ret->key, text, (size_t)(cut - text));
		copy_trimmed(ret->value, cut + strlen(splits[i].text),
			     len - (size_t)(cut - text) - strlen(splits[i].text));
		ret->between = splits[i].name;
		return;
	}
}

/* A name by Debian policy 5.6.1 that cannot be taken for an option or a version. */
static const char *check_package_row(const struct recipe_row *row)
{
	size_t n = strlen(row->key);

	if (n < 2 || n > 100 || strspn(row->key, "abcdefghijklmnopqrstuvwxyz0123456789+.-") != n ||
	    strchr("+.-", row->key[0]) || row->between)
		return "no name of a Debian package";
	return NULL;
}

static const char *check_source_row(const struct recipe_row *row)
{
	return sources_line_is_plain(row->key) && !row->between ? NULL : "expected deb URI SUITE main";
}

static const char *check_path_row(const struct recipe_row *row)
{
	return tree_path_is_plain(row->key) && !row->between ? NULL : "not a plain absolute path";
}

static const char *check_link_row(const struct recipe_row *row)
{
	if (!tree_path_is_plain(row->key))
		return "expected PATH -> TARGET with a plain absolute PATH";
	return row->between == '>' && row->value[0] && text_is_plain(row->value) ? NULL : "expected PATH -> TARGET";
}

static const char *check_generate_row(const struct recipe_row *row)
{
	if (!tree_path_is_plain(row->key))
		return "expected PATH = GENERATOR with a plain absolute PATH";
	return row->between == '=' && generator_find(row->value)
		       ? NULL
		       : "expected PATH = GENERATOR; brig-rootfs(1) lists them";
}

static const struct {
	const char *list;
	const char *(*check)(const struct recipe_row *);
} checks[] = {
	{ "sources",    check_source_row   },
	{ "packages",   check_package_row  },
	{ "omit",       check_package_row  },
	{ "prune",      check_path_row     }, /* a pattern must be a plain path too, so it cannot leave the tree */
	{ "keep",       check_path_row     },
	{ "dirs",       check_path_row     },
	{ "links",      check_link_row     },
	{ "generate",   check_generate_row },
	{ "compile",    check_path_row     },
	{ "prune_last", check_path_row     },
};

static const json_t *recipe_list(const struct recipe *r, const struct field *f)
{
	return *(const json_t *const *)((const char *)r + f->offset);
}

static int check_row(size_t i, const json_t *json, struct err *e)
{
	struct recipe_row row;
	const char       *text = json_string_value(json), *why;

	if (strlen(text) >= sizeof row.key)
		return err_set(e, ERR_BAD_SPEC, "%s: a row of %zu bytes, at most %zu are allowed", checks[i].list,
			       strlen(text), sizeof row.key - 1);
	if (!text_is_plain(text))
		return err_set(e, ERR_BAD_SPEC, "%s: a row with a character that cannot be shown", checks[i].list);
	recipe_row_read(json, &row);
	why = checks[i].check(&row);
	return why ? err_set(e, ERR_BAD_SPEC, "%s: \"%.120s\": %s", checks[i].list, text, why) : 0;
}

static int check_rows(const struct recipe *r, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
		const json_t *list = recipe_list(r, field_find(recipe_fields, checks[i].list));

		for (size_t j = 0; j < json_array_size(list); j++)
			if (check_row(i, json_array_get(list, j), e) < 0)
				return -1;
	}
	return 0;
}

/* --- the whole --- */

static bool list_has_key(const json_t *list, const char *key)
{
	struct recipe_row row;
	size_t            i;

	recipe_foreach(list, row, i) {
		if (strcmp(row.key, key) == 0)
			return true;
	}
	return false;
}

char *recipe_source_lines(const struct recipe *r)
{
	char             *text = NULL;
	size_t            len, i;
	struct recipe_row row;
	FILE             *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	recipe_foreach(r->sources, row, i) {
		fprintf(out, "%s\n", row.key);
	}
	fclose(out);
	return text;
}

bool recipe_has_package(const struct recipe *r, const char *name)
{
	return list_has_key(r->packages, name);
}

/* Like pip, accepts plain HTTP only from this machine. */
static bool is_index_url(const char *address)
{
	static const char *const begins[] = { "https://", "http://127.0.0.1:", "http://127.0.0.1/",
					      "http://localhost:", "http://localhost/" };
	bool                     good     = false;

	for (size_t i = 0; i < ARRAY_LEN(begins); i++)
		good = good || (strncmp(address, begins[i], strlen(begins[i])) == 0 && address[strlen(begins[i])]);
	for (const char *at = address; *at; at++)
		good = good && *at > ' ' && *at < 0x7f && !strchr("\"'#$\\", *at);
	return good;
}

/* Wheels have a name, a version and a hash, and come only from where the recipe names: there is no default index. */
static int check_wheel_settings(const struct recipe *r, struct err *e)
{
	if (r->index && !is_index_url(r->index))
		return err_set(e, ERR_BAD_SPEC,
			       "index: expected https://HOST/PATH/, or http:// for 127.0.0.1 and localhost");
	if (!r->requirements && (r->wheels || r->index))
		return err_set(e, ERR_BAD_SPEC, "%s: there is no requirements that says what to take from it",
			       r->wheels ? "wheels" : "index");
	if (r->requirements && !r->wheels && !r->index)
		return err_set(e, ERR_BAD_SPEC,
			       "requirements: nothing says where its wheels are; add \"wheels\": \"DIRECTORY\" or "
			       "\"index\": \"https://...\"");
	if (r->wheels && r->index)
		return err_set(e, ERR_BAD_SPEC, "index: there is a directory of wheels as well; one of them");
	return 0;
}

static int check_recipe(const struct recipe *r, struct err *e)
{
	struct recipe_row row;
	size_t            i;

	if (!r->suite)
		return err_set(e, ERR_BAD_SPEC, "suite: missing; name a Debian release, like \"bookworm\"");
	if (json_array_size(r->packages) == 0)
		return err_set(e, ERR_BAD_SPEC, "packages: missing; a rootfs without a package is empty");
	recipe_foreach(r->omit, row, i) { /* it would be missing without a message */
		if (list_has_key(r->packages, row.key))
			return err_set(e, ERR_BAD_SPEC, "omit: \"%s\": is in packages as well", row.key);
	}
	return check_wheel_settings(r, e);
}

/* --- a recipe on top of another --- */

/* Refuses a row of keep that takes nothing back: its author believes that it does. */
static int check_keep_rows(const struct recipe *r, const struct recipe *base, struct err *e)
{
	struct recipe_row row;
	size_t            i;

	recipe_foreach(r->keep, row, i) {
		if (!list_has_key(base->prune, row.key))
			return err_set(e, ERR_BAD_SPEC, "keep: \"%.120s\": %s%s", row.key,
				       base->name[0] ? base->name : "it extends no recipe",
				       base->name[0] ? " has no such row of prune" : "");
	}
	return 0;
}

/* The base's rows except those in `without`, then r's own. A new reference; NULL when memory is short. */
static json_t *join_rows(const json_t *base, const json_t *without, const json_t *own)
{
	json_t           *joined = json_array();
	struct recipe_row row;
	size_t            i;
	int               r = 0;

	recipe_foreach(base, row, i) {
		if (!list_has_key(without, row.key))
			r |= json_array_append(joined, json_array_get(base, i));
	}
	if (own)
		r |= json_array_extend(joined, (json_t *)own);
	if (r == 0)
		return joined;
	json_decref(joined);
	return NULL;
}

/* requirements, wheels and index belong together: r inherits all of them, or none. */
static bool field_is_inherited(const struct recipe *r, const struct field *f)
{
	bool is_wheels = f->offset == AT(requirements) || f->offset == AT(wheels) || f->offset == AT(index);

	return f->type == FIELD_NAME || (is_wheels && !r->requirements && !r->wheels && !r->index);
}

/* Joins lists of rows (packages and paths). Of the other fields, r inherits those that it does not have. */
static int join_field(struct recipe *r, const struct recipe *base, const struct field *f)
{
	/* without: rows of the base that r takes back. packages comes before omit in recipe_fields, so r->omit has only
	 * r's own rows here. */
	uint64_t      left    = f->max - base->size_max;
	const json_t *without = f->offset == AT(prune) ? r->keep : f->offset == AT(packages) ? r->omit : NULL;

	if (f->type == FIELD_LIST && f->offset != AT(keep))
		return json_object_set_new(r->source, f->name,
					   join_rows(recipe_list(base, f), without, recipe_list(r, f)));
	if (json_object_get(r->source, f->name))
		return 0;
	/* the base's size_max is for the base alone; the recipe on top gets the preset in addition */
	if (f->type == FIELD_SIZE)
		return json_object_set_new(
			r->source, f->name,
			json_integer((json_int_t)(base->size_max + (f->preset < left ? f->preset : left))));
	if (field_is_inherited(r, f) && json_object_get(base->source, f->name))
		return json_object_set(r->source, f->name, json_object_get(base->source, f->name));
	return 0;
}

int recipe_extend(struct recipe *r, const struct recipe *base, struct err *e)
{
	char both[2 * DIGEST_HEX + 1];
	int  n = snprintf(both, sizeof both, "%s%s", base->sha256, r->sha256);

	/* Another base makes another digest, so that "is it built already?" has the right answer. */
	if (check_keep_rows(r, base, e) < 0 || digest_compute_of_bytes(both, (size_t)n, r->sha256, e) < 0)
		return -1;
	for (const struct field *f = recipe_fields; f->name; f++)
		if (join_field(r, base, f) < 0)
			return err_set(e, ERR_LIMIT, "out of memory");
	return fields_decode(recipe_fields, r->source, r, e) < 0 ? -1 : check_recipe(r, e);
}

/* --- the file --- */

void recipe_done(struct recipe *r)
{
	json_decref(r->source);
	*r = (struct recipe){ 0 };
}

int recipe_parse(struct recipe *ret, const char *name, const void *bytes, size_t len, struct err *e)
{
	scoped_recipe r = { 0 };

	if (!text_is_name(name))
		return err_set(e, ERR_BAD_SPEC, "\"%.63s\" is no name; use a-z, 0-9, '-', '_', '.'", name);
	snprintf(r.name, sizeof r.name, "%s", name);
	if (digest_compute_of_bytes(bytes, len, r.sha256, e) < 0)
		return -1;
	r.source = wire_parse(bytes, len, RECIPE_MAX, e);
	if (!r.source)
		return -1;
	fields_set_presets(recipe_fields, &r);
	if (fields_decode(recipe_fields, r.source, &r, e) < 0)
		return -1;
	if (check_rows(&r, e) < 0)
		return -1;
	if (!r.extends && (check_keep_rows(&r, &(struct recipe){ 0 }, e) < 0 || check_recipe(&r, e) < 0))
		return -1;
	*ret = r;
	r    = (struct recipe){ 0 };
	return 0;
}

/* "basic" -> FOLDER/basic.json; "./x/web.json" -> itself, named web. */
static int find_recipe_file(const char *folder, const char *text, char path[1280], char name[64], struct err *e)
{
	const char *last = strrchr(text, '/');
	int         n;

	last = last ? last + 1 : text;
	if (text_ends_in(text, ".json")) {
		n = snprintf(path, 1280, "%s", text);
		snprintf(name, 64, "%.*s", (int)strlen(last) - 5, last);
	} else if (text_is_name(text)) {
		n = snprintf(path, 1280, "%s/%s.json", folder, text);
		snprintf(name, 64, "%s", text);
	} else {
		return err_set(e, ERR_BAD_SPEC,
			       "\"%.100s\" is neither the name of a recipe nor a file that ends in .json", text);
	}
	return n < 1280 ? 0 : err_set(e, ERR_BAD_SPEC, "%.60s...: path too long", text);
}

static int is_recipe_file_name(const struct dirent *entry)
{
	return text_ends_in(entry->d_name, ".json");
}

/* If text is a name, and not a file, the error lists the recipes of the folder. */
static int err_unknown_recipe(const char *folder, const char *text, const char *path, struct err *e)
{
	struct dirent **found = NULL;
	int             count = text_ends_in(text, ".json") ? 0 :
		scandir(folder, &found, is_recipe_file_name, alphasort);
	char            list[200] = "";
	size_t          n     = 0;

	for (int i = 0; i < count; i++) {
		if (n < sizeof list)
			n += (size_t)snprintf(list + n, sizeof list - n, "%s%.*s", i ? ", " : "; there are: ",
					      (int)strlen(found[i]->d_name) - 5, found[i]->d_name);
		free(found[i]);
	}
	free(found);
	return err_set(e, ERR_MISSING, "no recipe %s%s", path, list);
}

static int recipe_load_at(struct recipe *ret, const char *folder, const char *text, unsigned depth, struct err *e);

/* Only from the folder: a file beside the recipe may belong to another user. */
static int load_extended_recipe(struct recipe *r, const char *folder, unsigned depth, struct err *e)
{
	scoped_recipe base = { 0 };

	if (text_ends_in(r->extends, ".json"))
		return err_set(e, ERR_BAD_SPEC, "extends \"%s\": expected a name, not a file", r->extends);
	if (depth == RECIPE_DEPTH)
		return err_set(e, ERR_LIMIT,
			       "extends \"%s\": more than %d recipes on top of each other; does one extend itself?",
			       r->extends, RECIPE_DEPTH);
	if (recipe_load_at(&base, folder, r->extends, depth + 1, e) < 0)
		return depth == 1 ? err_wrap(e, "extends \"%s\"", r->extends) : -1;
	return recipe_extend(r, &base, e);
}

/* Makes relative paths in a recipe relative to the recipe's directory. */
static int resolve_relative_paths(struct recipe *r, const char *path, struct err *e)
{
	static const char *const names[] = { "requirements", "wheels" };
	const char              *slash   = strrchr(path, '/');

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *is = json_string_value(json_object_get(r->source, names[i]));

		if (is && is[0] != '/' && slash &&
		    json_object_set_new(r->source, names[i], json_sprintf("%.*s/%s", (int)(slash - path), path, is)) <
			    0)
			return err_set(e, ERR_LIMIT, "out of memory");
	}
	return fields_decode(recipe_fields, r->source, r, e);
}

static int recipe_load_at(struct recipe *ret, const char *folder, const char *text, unsigned depth, struct err *e)
{
	scoped_recipe r = { 0 };
	scoped_bytes  b = { 0 };
	char          path[1280], name[64];

	if (find_recipe_file(folder, text, path, name, e) < 0)
		return -1;
	if (trust_read(path, RECIPE_MAX, &b, e) < 0)
		return e->errnum == ENOENT ? err_unknown_recipe(folder, text, path, e) : -1;
	if (recipe_parse(&r, name, b.data, b.len, e) < 0 || resolve_relative_paths(&r, path, e) < 0)
		return err_wrap(e, "%s", path);
	if (r.extends && load_extended_recipe(&r, folder, depth, e) < 0)
		return depth == 1 ? err_wrap(e, "%s", path)
				  : -1; /* only the first recipe's path goes into the message */
	*ret = r;
	r    = (struct recipe){ 0 };
	return 0;
}

int recipe_load(struct recipe *ret, const char *folder, const char *text, struct err *e)
{
	return recipe_load_at(ret, folder, text, 1, e);
}
