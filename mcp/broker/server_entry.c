#define _GNU_SOURCE
#include "server_entry.h"

#include "text.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- names --- */

static bool is_python_keyword(const char *text)
{
	static const char words[] = " False None True and as assert async await break class continue def del elif else except finally for from global if import "
				    "in is lambda nonlocal not or pass raise return try while with yield match case print self ";
	char              padded[32];

	return snprintf(padded, sizeof padded, " %s ", text) < (int)sizeof padded && strstr(words, padded);
}

void make_python_identifier(const char *name, char *ret, size_t max)
{
	size_t n = 0;

	if (!text_is_identifier_letter(*name) && n < max)
		ret[n++] = '_';
	for (; *name && n < max; name++)
		ret[n++] = text_is_identifier_letter(*name) || (*name >= '0' && *name <= '9') ? *name : '_';
	ret[n] = 0;
	if (is_python_keyword(ret) && n < max)
		strcpy(ret + n, "_");
}

/* --- ${NAME} --- */

/* p: behind "${". Returns the closing brace and finds the name and its preset, which may be NULL. NULL: no valid reference. */
static const char *find_variable_end(const char *p, size_t *name_len, const char **preset)
{
	const char *end = strchr(p, '}');

	*name_len = 0;
	while (text_is_identifier_letter(p[*name_len]) || (*name_len && p[*name_len] >= '0' && p[*name_len] <= '9'))
		++*name_len;
	*preset = begins_with(p + *name_len, ":-") ? p + *name_len + 2 : NULL;
	if (!end || !*name_len || (!*preset && p[*name_len] != '}'))
		return NULL;
	return end;
}

static void expand_one_variable(FILE *out, const char *p, size_t name_len, const char *preset, const char *end, char *missing, size_t len)
{
	char        name[128];
	const char *value;

	snprintf(name, sizeof name, "%.*s", (int)name_len, p);
	value = getenv(name);
	if (value && (*value || !preset))
		fputs(value, out);
	else if (preset)
		fprintf(out, "%.*s", (int)(end - preset), preset);
	else
		snprintf(missing, len, "%s", name);
}

/* Expands variables as other clients do; their values are not expanded again. missing: the last variable that is not set, or untouched. */
static char *expand_variables(const char *text, char *missing, size_t len)
{
	char       *made = NULL;
	size_t      n, name_len;
	const char *end, *preset;
	FILE       *out = open_memstream(&made, &n);

	if (!out)
		return NULL;
	for (; *text; text++) {
		if (text[0] != '$' || text[1] != '{' || !(end = find_variable_end(text + 2, &name_len, &preset))) {
			putc(*text, out);
			continue;
		}
		expand_one_variable(out, text + 2, name_len, preset, end, missing, len);
		text = end;
	}
	fclose(out);
	return made;
}

/* --- one entry --- */

struct parse {
	struct server_entries *all;
	struct server_entry   *entry;
	struct err            *e;
};

static void add_entry_note(struct server_entries *s, const char *name, const char *what)
{
	json_array_append_new(s->notes, json_sprintf("servers: %s: %s", name, what));
}

static int set_entry_error(struct parse *p, const char *key, const char *expected)
{
	return err_set(p->e, ERR_BAD_SPEC, "mcpServers.%.60s.%.60s: expected %s", p->entry->name, key, expected);
}

/* A text of the file with its variables expanded; a new reference. NULL with *e. */
static json_t *parse_entry_text(struct parse *p, const char *key, const json_t *value)
{
	char    missing[128] = "", *text;
	json_t *made;

	if (!json_is_string(value) || json_string_length(value) != strlen(json_string_value(value))) {
		(void)set_entry_error(p, key, "a text");
		return NULL;
	}
	text = expand_variables(json_string_value(value), missing, sizeof missing);
	made = text ? json_string(text) : NULL;
	free(text);
	if (!made)
		(void)set_entry_error(p, key, "a text that is UTF-8");
	if (*missing)
		snprintf(p->entry->broken, sizeof p->entry->broken, "%.40s: the variable %.100s is not set", key, missing);
	return made;
}

static int parse_text_list(struct parse *p, const char *key, const json_t *list, json_t *into)
{
	size_t  i;
	json_t *item, *made;

	if (!json_is_array(list))
		return set_entry_error(p, key, "a list of texts");
	json_array_foreach(list, i, item) {
		if (!(made = parse_entry_text(p, key, item)))
			return -1;
		json_array_append_new(into, made);
	}
	return 0;
}

static int parse_text_map(struct parse *p, const char *key, const json_t *map, const json_t **ret)
{
	json_t     *into = json_object(), *item, *made;
	const char *name;

	json_array_append_new(p->all->kept, into);
	if (!json_is_object(map))
		return set_entry_error(p, key, "an object of texts");
	json_object_foreach((json_t *)map, name, item) {
		if (!*name || text_has_control(name) || strchr(name, '='))
			return set_entry_error(p, key, "names without '=' and control characters");
		if (!(made = parse_entry_text(p, name, item)))
			return -1;
		if (text_has_control(json_string_value(made)) && strcmp(key, "headers") == 0) {
			json_decref(made);
			return set_entry_error(p, name, "a header without control characters");
		}
		json_object_set_new(into, name, made);
	}
	*ret = into;
	return 0;
}

static int parse_nonempty_text(struct parse *p, const char *key, const json_t *value, const char **ret)
{
	json_t *made = parse_entry_text(p, key, value);

	if (!made)
		return -1;
	json_array_append_new(p->all->kept, made);
	if (!*json_string_value(made) && !*p->entry->broken)
		return set_entry_error(p, key, "a text that is not empty");
	*ret = json_string_value(made);
	return 0;
}

static int parse_command(struct parse *p, const json_t *entry_json)
{
	json_t       *argv = json_array();
	const json_t *args = json_object_get(entry_json, "args");
	const char   *command;

	json_array_append_new(p->all->kept, argv);
	if (parse_nonempty_text(p, "command", json_object_get(entry_json, "command"), &command) < 0)
		return -1;
	json_array_append_new(argv, json_string(command));
	p->entry->argv = argv;
	return args ? parse_text_list(p, "args", args, argv) : 0;
}

/* --- its kind, and the other keys --- */

static const struct {
	const char *name, *key;
} kinds[] = {
#define KIND(id, name, key, doc) [SERVER_##id] = { name, key },
#include "server_kind.def"
};

static const struct {
	const char      *name;
	enum server_kind kind;
} other_names[] = { { "streamable-http", SERVER_http }, { "streamableHttp", SERVER_http }, { "streamable_http", SERVER_http }, { "local", SERVER_stdio } };

/* Without a type, the key that the entry has decides. SERVER_KINDS: unknown. */
static enum server_kind server_kind_of_entry(const json_t *entry_json)
{
	const json_t *type = json_object_get(entry_json, "type") ? json_object_get(entry_json, "type") : json_object_get(entry_json, "transport");
	const char   *name = json_string_value(type);

	for (int k = 0; k < SERVER_KINDS; k++)
		if (name ? strcmp(name, kinds[k].name) == 0 : !type && json_object_get(entry_json, kinds[k].key) != NULL)
			return (enum server_kind)k;
	for (size_t i = 0; name && i < ARRAY_LEN(other_names); i++)
		if (strcmp(name, other_names[i].name) == 0)
			return other_names[i].kind;
	return SERVER_KINDS;
}

static void note_unknown_keys(struct parse *p, const json_t *entry_json)
{
	static const char *const known[] = { "type", "transport", "command", "args", "env", "cwd", "url", "headers", "disabled" };
	const char              *key;
	json_t                  *value;

	json_object_foreach((json_t *)entry_json, key, value) {
		bool found = false;
		char text[160];

		for (size_t i = 0; i < ARRAY_LEN(known); i++)
			found |= strcmp(key, known[i]) == 0;
		snprintf(text, sizeof text, "the key \"%.60s\" is not known here, and not used", key);
		text_make_plain(text);
		if (!found)
			add_entry_note(p->all, p->entry->name, text);
	}
}

static int parse_kind_keys(struct parse *p, const json_t *entry_json)
{
	p->entry->kind = server_kind_of_entry(entry_json);
	switch (p->entry->kind) {
	case SERVER_stdio:
		return parse_command(p, entry_json);
	case SERVER_http:
	case SERVER_sse:
		if (parse_nonempty_text(p, "url", json_object_get(entry_json, "url"), &p->entry->url) < 0)
			return -1;
		if (*p->entry->broken || begins_with(p->entry->url, "https://") || begins_with(p->entry->url, "http://"))
			return 0;
		return set_entry_error(p, "url", "an address that begins with https:// or http://");
	case SERVER_KINDS:
		break;
	}
	return set_entry_error(p, "type", "stdio, with a command, or http or sse, with a url");
}

static int parse_entry(struct parse *p, const json_t *entry_json)
{
	const json_t *env = json_object_get(entry_json, "env"), *headers = json_object_get(entry_json, "headers"), *cwd = json_object_get(entry_json, "cwd");

	if (parse_kind_keys(p, entry_json) < 0)
		return -1;
	if ((env && parse_text_map(p, "env", env, &p->entry->env) < 0) || (headers && parse_text_map(p, "headers", headers, &p->entry->headers) < 0))
		return -1;
	if (cwd && parse_nonempty_text(p, "cwd", cwd, &p->entry->cwd) < 0)
		return -1;
	note_unknown_keys(p, entry_json);
	if (*p->entry->broken)
		add_entry_note(p->all, p->entry->name, p->entry->broken);
	return 0;
}

/* --- all of them --- */

/* A client's own file may list brig-mcp, too, which would then start itself, again and again. */
static bool is_left_out_entry(struct server_entries *s, const char *name, const json_t *entry_json)
{
	const char *command = json_string_value(json_object_get(entry_json, "command")), *slash = command ? strrchr(command, '/') : NULL;

	if (json_is_true(json_object_get(entry_json, "disabled"))) {
		add_entry_note(s, name, "it is switched off");
		return true;
	}
	if (!command || strcmp(slash ? slash + 1 : command, "brig-mcp") != 0)
		return false;
	add_entry_note(s, name, "it is brig-mcp itself, and left out");
	return true;
}

static int set_entry_name(struct parse *p, const char *name)
{
	p->entry->name = name;
	if (!*name || strlen(name) > SERVER_NAME_MAX || !text_is_plain(name))
		return err_set(p->e, ERR_BAD_SPEC, "mcpServers: a name has 1 to %d bytes of plain text", SERVER_NAME_MAX);
	make_python_identifier(name, p->entry->identifier, SERVER_NAME_MAX);
	for (const struct server_entry *other = p->all->entry; other < p->entry; other++)
		if (strcmp(other->identifier, p->entry->identifier) == 0)
			return err_set(p->e, ERR_BAD_SPEC, "mcpServers: \"%.60s\" and \"%.60s\" are both %s in Python; rename one", other->name, name,
				       other->identifier);
	return 0;
}

static int parse_all_entries(struct server_entries *s, const json_t *list, struct err *e)
{
	const char *name;
	json_t     *entry_json;

	json_object_foreach((json_t *)list, name, entry_json) {
		struct parse p = { .all = s, .entry = &s->entry[s->n], .e = e };

		if (json_is_object(entry_json) && is_left_out_entry(s, name, entry_json))
			continue;
		if (set_entry_name(&p, name) < 0)
			return -1;
		if (!json_is_object(entry_json))
			return err_set(e, ERR_BAD_SPEC, "mcpServers.%.60s: expected an object", name);
		if (parse_entry(&p, entry_json) < 0)
			return -1;
		s->n++;
	}
	return 0;
}

static const json_t *find_server_list(struct server_entries *s, const json_t *file, struct err *e)
{
	const json_t *list = json_object_get(file, "mcpServers");
	const char   *key;
	json_t       *value;

	json_object_foreach((json_t *)file, key, value)
		if (list && strcmp(key, "mcpServers") != 0)
			json_array_append_new(s->notes, json_sprintf("servers: the key \"%.60s\" is not known here, and not used", key));
	if (json_is_object(list) && json_object_size(list) <= SERVERS_MAX)
		return list;
	if (list)
		err_set(e, ERR_BAD_SPEC, "mcpServers: expected an object of at most %d entries", SERVERS_MAX);
	else
		err_set(e, ERR_BAD_SPEC, "there is no object mcpServers%s", json_object_get(file, "servers") ? "; rename \"servers\" to it" : "");
	return NULL;
}

int server_entries_parse(struct server_entries *ret, const char *bytes, size_t len, struct err *e)
{
	json_t       *file = wire_parse(bytes, len, SERVERS_FILE_MAX, e);
	const json_t *list;

	*ret = (struct server_entries){ 0 };
	if (!file)
		return -1;
	*ret = (struct server_entries){ .kept = json_array(), .notes = json_array() };
	json_array_append_new(ret->kept, file);
	list       = find_server_list(ret, file, e);
	ret->entry = list ? calloc(json_object_size(list) + 1, sizeof *ret->entry) : NULL;
	if (list && !ret->entry)
		err_set(e, ERR_LIMIT, "out of memory");
	if (ret->entry && parse_all_entries(ret, list, e) == 0)
		return 0;
	server_entries_done(ret);
	return -1;
}

void server_entries_done(struct server_entries *s)
{
	free(s->entry);
	json_decref(s->kept);
	json_decref(s->notes);
	*s = (struct server_entries){ 0 };
}
