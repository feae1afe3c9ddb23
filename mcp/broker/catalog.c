#define _GNU_SOURCE
#include "catalog.h"

#include "clean.h"
#include "tool_schema.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- texts --- */

/* malloc'ed, at most max bytes. */
static char *copy_clean_cut(const char *text, size_t max)
{
	size_t len = strlen(text), n;
	char  *made = clean_text(text, len < 2 * max ? len : clean_cut_length(text, len, 2 * max), false, &n);

	if (made)
		made[clean_cut_length(made, n, max)] = 0;
	return made;
}

/* The first sentence, in one line. */
static char *first_sentence_of(const char *about)
{
	char  *line = copy_clean_cut(about, TOOL_LINE_MAX);
	size_t n = 0;

	if (!line)
		return NULL;
	for (const char *p = line; *p; p++) {
		bool blank = isspace((unsigned char)*p);

		if (!blank || (n && line[n - 1] != ' '))
			line[n++] = blank ? ' ' : *p;
		if (*p == '.' && isspace((unsigned char)p[1]))
			break;
	}
	line[n] = 0;
	return line;
}

/* --- one tool --- */

static bool tool_annotation_hint(const json_t *definition, const char *name, bool unsaid)
{
	const json_t *value = json_object_get(json_object_get(definition, "annotations"), name);

	return json_is_boolean(value) ? json_is_true(value) : unsaid;
}

/* Letters, digits, '_', '.', '-' and '/', as the specification has them. */
static bool is_valid_tool_name(const json_t *name)
{
	const char *text = json_string_value(name);

	if (!text || !*text || json_string_length(name) != strlen(text) || strlen(text) > TOOL_NAME_MAX)
		return false;
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr("_.-/", *text))
			return false;
	return true;
}

static bool fill_catalog_tool(struct catalog_tool *t, const struct server_entry *server, json_t *definition)
{
	const char *about = json_string_value(json_object_get(definition, "description"));
	char        word[TOOL_NAME_MAX + 8];

	*t = (struct catalog_tool){ .name = json_string_value(json_object_get(definition, "name")), .definition = json_incref(definition) };
	make_python_identifier(t->name, word, TOOL_NAME_MAX);
	t->read_only   = tool_annotation_hint(definition, "readOnlyHint", false);
	t->destructive = tool_annotation_hint(definition, "destructiveHint", true);
	if (asprintf(&t->full, "%s.%s", server->identifier, word) < 0)
		t->full = NULL;
	if (asprintf(&t->own, "%s.%s", server->name, t->name) < 0)
		t->own = NULL;
	t->line      = first_sentence_of(about ? about : "");
	t->about     = copy_clean_cut(about ? about : "", TOOL_ABOUT_MAX);
	t->signature = signature_make(json_object_get(definition, "inputSchema"), json_object_get(definition, "outputSchema"));
	return t->full && t->own && t->line && t->about && t->signature;
}

static void free_catalog_tool(struct catalog_tool *t)
{
	json_decref(t->definition);
	free(t->full);
	free(t->own);
	free(t->line);
	free(t->about);
	free(t->signature);
}

/* --- all of them --- */

static int compare_by_full_name(const void *a, const void *b)
{
	const struct catalog_tool *x = a, *y = b;
	int                        r = strcmp(x->full, y->full);

	return r ? r : strcmp(x->name, y->name);
}

/* The tools are sorted, so that equal names are adjacent, and get the same numbers whatever other tools there are. */
static int number_equal_names(struct catalog *c)
{
	for (size_t i = 0, first = 0, n = 1; i + 1 < c->n; i++) {
		char *numbered;

		if (strcmp(c->tool[i + 1].full, c->tool[first].full) != 0) {
			first = i + 1;
			n     = 1;
			continue;
		}
		if (asprintf(&numbered, "%s_%zu", c->tool[first].full, ++n) < 0)
			return -1;
		free(c->tool[i + 1].full);
		c->tool[i + 1].full = numbered;
	}
	qsort(c->tool, c->n, sizeof *c->tool, compare_by_full_name);
	return 0;
}

/* A numbered name may be the name of another tool: one of the two is left out. */
static void drop_duplicate_names(struct catalog *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->n; i++) {
		if (kept && strcmp(c->tool[kept - 1].full, c->tool[i].full) == 0) {
			free_catalog_tool(&c->tool[i]);
			c->left_out++;
		} else {
			c->tool[kept++] = c->tool[i];
		}
	}
	c->n = kept;
}

static int add_valid_tools(struct catalog *c, const struct server_entry *server, const json_t *definitions)
{
	json_t *seen = json_object(), *one;
	size_t  i;
	bool    ok = true;

	json_array_foreach((json_t *)definitions, i, one) {
		const json_t *name = json_object_get(one, "name"), *schema = json_object_get(one, "inputSchema");
		size_t        len  = json_dumpb(one, NULL, 0, JSON_COMPACT);

		if (c->n == CATALOG_MAX || !is_valid_tool_name(name) || (schema && !json_is_object(schema)) || !len ||
		    len > TOOL_DEFINITION_MAX || json_object_get(seen, json_string_value(name))) {
			c->left_out++;
			continue;
		}
		json_object_set_new(seen, json_string_value(name), json_true());
		ok &= fill_catalog_tool(&c->tool[c->n++], server, one);
	}
	json_decref(seen);
	return ok ? 0 : -1;
}

int catalog_build(struct catalog *ret, const struct server_entry *server, const json_t *definitions, struct err *e)
{
	*ret = (struct catalog){ .tool = calloc(json_array_size(definitions) + 1, sizeof *ret->tool) };
	if (ret->tool && add_valid_tools(ret, server, definitions) == 0) {
		qsort(ret->tool, ret->n, sizeof *ret->tool, compare_by_full_name);
		if (number_equal_names(ret) == 0) {
			drop_duplicate_names(ret);
			return 0;
		}
	}
	catalog_done(ret);
	return err_set(e, ERR_LIMIT, "out of memory");
}

void catalog_done(struct catalog *c)
{
	for (size_t i = 0; i < c->n; i++)
		free_catalog_tool(&c->tool[i]);
	free(c->tool);
	*c = (struct catalog){ 0 };
}

/* --- looking --- */

const struct catalog_tool *catalog_find_tool(const struct catalog *c, const char *name)
{
	size_t low = 0, high = c->n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		int    r      = strcmp(name, c->tool[middle].full);

		if (r == 0)
			return &c->tool[middle];
		if (r < 0)
			high = middle;
		else
			low = middle + 1;
	}
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->tool[i].own, name) == 0)
			return &c->tool[i];
	return NULL;
}

unsigned catalog_rank_tool(const struct catalog_tool *t, const char *words)
{
	static const char between[] = " \t\r\n.,;:/_-";
	unsigned          sum = 0, n = 0;
	char              word[64];

	for (; *words && n < 32; words += strcspn(words, between)) {
		words += strspn(words, between);
		if (!*words)
			break;
		snprintf(word, sizeof word, "%.*s", (int)strcspn(words, between), words);
		n++;
		sum += strcasestr(t->full, word) ? 4 : 0;
		sum += strcasestr(t->line, word) ? 2 : 0;
		sum += strcasestr(t->about, word) ? 1 : 0;
	}
	return n ? sum : 1; /* no words: all fit alike */
}

json_t *catalog_tool_summary_json(const struct catalog_tool *t)
{
	json_t *signature = json_sprintf("%s%s", t->full, t->signature);

	return json_pack("{ss ss so}", "name", t->full, "summary", t->line, "signature", signature);
}

json_t *catalog_tool_definition_json(const struct catalog_tool *t)
{
	const json_t *input = json_object_get(t->definition, "inputSchema"), *output = json_object_get(t->definition, "outputSchema");
	json_t       *made  = json_pack("{ss ss}", "name", t->full, "description", t->about);

	json_object_set_new(made, "inputSchema", input ? json_incref((json_t *)input) : json_pack("{ss}", "type", "object"));
	if (json_is_object(output))
		json_object_set(made, "outputSchema", (json_t *)output);
	return made;
}
