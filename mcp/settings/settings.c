/* settings.c - the rows of the settings: as options, by name, how a row takes a text, and how all are printed */
#include "settings.h"

#include "brigd_connection.h"
#include "nearest.h"
#include "text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const struct setting_texts setting_texts[SETTING_COUNT] = {
#define SETTING(member, type, option, older, min, max, preset, doc) [SETTING_##member] = { older, preset },
#include "settings.def"
};

/* A preset that its own row refuses is a bug, which tests/unit/test_settings.c finds. */
void settings_init(struct settings *s)
{
	static const struct setting_source preset_source = { .origin = ORIGIN_PRESET };
	struct err                         e;

	*s = (struct settings){ .kept = json_array(), .notes = json_array() };
	for (int id = 0; id < SETTING_COUNT; id++)
		if (setting_set(s, (enum setting_id)id, &preset_source, setting_texts[id].preset, &e) < 0)
			abort();
}

void settings_done(struct settings *s)
{
	json_decref(s->kept);
	json_decref(s->notes);
	*s = (struct settings){ 0 };
}

int settings_exit_status(const struct err *e)
{
	return e->kind == ERR_DENIED ? 1 : 2;
}

/* --- a text becomes the value, unless a stronger place has set it --- */

/* A copy that lives as long as the settings. NULL with *e: it is not UTF-8. */
static const char *settings_keep_text(struct settings *s, const char *text, size_t len, struct err *e)
{
	json_t *copy = json_stringn(text, len);

	if (copy && json_array_append_new(s->kept, copy) == 0)
		return json_string_value(copy);
	err_set(e, ERR_BAD_SPEC, "the text is not UTF-8");
	return NULL;
}

/* "math , json," has two entries. */
static int add_list_entry(json_t *list, const char *from, size_t len, uint64_t max, struct err *e)
{
	while (len && strchr(" \t\r\n", from[len - 1]))
		len--;
	for (; len && strchr(" \t\r\n", *from); len--)
		from++;
	if (!len)
		return 0;
	if (json_array_size(list) == max)
		return err_set(e, ERR_BAD_SPEC, "more than %" PRIu64 " entries", max);
	return json_array_append_new(list, json_stringn(from, len)) < 0 ? err_set(e, ERR_BAD_SPEC, "the text is not UTF-8") : 0;
}

static int set_list_value(struct settings *s, const struct field *f, const char *text, struct err *e)
{
	json_t *list = json_array();

	if (json_array_append_new(s->kept, list) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (const char *p = text; *p;) {
		size_t len = strcspn(p, ",");

		if (add_list_entry(list, p, len, f->max, e) < 0)
			return -1;
		p += len + (p[len] == ',');
	}
	*(json_t **)((char *)s + f->offset) = list;
	return 0;
}

static int set_text_value(struct settings *s, const struct field *f, const char *text, struct err *e)
{
	const char *kept;

	if (text_has_control(text))
		return err_set(e, ERR_BAD_SPEC, "control characters are not allowed");
	if (!(kept = settings_keep_text(s, text, strlen(text), e)))
		return -1;
	return field_from_text(f, kept, s, e);
}

/*
 * Of two values from the same place the first one counts; of options the last, as people append theirs to those of a script.
 * A token of .env is the weakest: that file may come from somebody else, and must not replace the token that the user has chosen.
 */
static bool is_set_by_stronger_origin(const struct settings *s, enum setting_id id, enum setting_origin origin)
{
	if (id == SETTING_token && s->origin[id] == ORIGIN_DOTENV && origin == ORIGIN_FILE)
		return false;
	return s->origin[id] > origin || (s->origin[id] == origin && origin != ORIGIN_OPTION && origin != ORIGIN_PRESET);
}

/* brig's own names for the token take a file that holds it, as others can see what is typed. SANDBOX_API_TOKEN takes the token itself. */
static int setting_parse_value(struct settings *s, enum setting_id id, const struct setting_source *by, const char *text, struct err *e)
{
	static const struct field token_file = { .type = FIELD_STR, .offset = offsetof(struct settings, token_file), .max = FIELD_ANY };
	const struct field       *f          = &setting_rows[id].field;

	if (id == SETTING_token && by->where && !by->older) {
		f        = &token_file;
		s->token = ""; /* that of .env */
	}
	if (f->type == FIELD_LIST)
		return set_list_value(s, f, text, e);
	return f->type == FIELD_STR || f->type == FIELD_NAME ? set_text_value(s, f, text, e) : field_from_text(f, text, s, e);
}

int setting_set(struct settings *s, enum setting_id id, const struct setting_source *by, const char *text, struct err *e)
{
	const char *where = NULL;

	if (is_set_by_stronger_origin(s, id, by->origin) || (by->where && !*text))
		return 0;
	if (by->where && !(where = settings_keep_text(s, by->where, strlen(by->where), e)))
		return -1;
	if (setting_parse_value(s, id, by, text, e) < 0)
		return where ? err_wrap(e, "%s", where) : -1;
	s->origin[id] = by->origin;
	s->where[id]  = where;
	return 0;
}

/* --- names --- */

/* "max-timeout" -> BRIG_MCP_MAX_TIMEOUT, max_timeout */
char *setting_spell_name(enum setting_id id, enum setting_spelling how, char *buf, size_t len)
{
	static const char *const heads[] = { [SPELT_OPTION] = "--", [SPELT_VARIABLE] = SETTINGS_VARIABLE, [SPELT_KEY] = "" };
	size_t                   n       = strlen(heads[how]);

	snprintf(buf, len, "%s%s", heads[how], setting_rows[id].field.name);
	for (char *p = buf + n; how != SPELT_OPTION && *p; p++) {
		if (*p == '-')
			*p = '_';
		else if (how == SPELT_VARIABLE)
			*p = (char)toupper((unsigned char)*p);
	}
	return buf;
}

int setting_find_by_name(enum setting_spelling how, const char *name)
{
	char buf[SETTING_NAME_MAX];

	for (int id = 0; id < SETTING_COUNT; id++)
		if (strcmp(setting_spell_name((enum setting_id)id, how, buf, sizeof buf), name) == 0)
			return id;
	return -1;
}

int setting_find_nearest(enum setting_spelling how, const char *name)
{
	unsigned least = NEAREST_FAR, d;
	int      best  = -1;
	char     buf[SETTING_NAME_MAX];

	for (int id = 0; id < SETTING_COUNT; id++)
		if ((d = nearest_distance(setting_spell_name((enum setting_id)id, how, buf, sizeof buf), name)) < least) {
			least = d;
			best  = id;
		}
	return best;
}

/* --- as options; and what else the command line has --- */

static const char *const replies[] = { [REPLY_JSON] = "json", [REPLY_TEXT] = "text", NULL };
static const char *const imports[] = { [IMPORTS_ADVISE] = "advise", [IMPORTS_ENFORCE] = "enforce", NULL };
static const char *const servers[] = {
	[BRIGD_ANY] = "any", [BRIGD_PRIVATE] = "private", [BRIGD_SERVICE] = "service", NULL,
};

static int set_from_option(void *into, const struct option_row *row, const char *value, struct err *e)
{
	enum setting_id             id = (enum setting_id)(row - setting_rows);
	char                        where[SETTING_NAME_MAX];
	const struct setting_source by = { ORIGIN_OPTION, setting_spell_name(id, SPELT_OPTION, where, sizeof where), false };

	return setting_set(into, id, &by, value, e);
}

/* --stdio; --transport http, as the published server is started. */
static int set_from_transport(void *into, const struct option_row *row, const char *value, struct err *e)
{
	bool                        is_stdio = strcmp(row->field.name, "stdio") == 0;
	const struct setting_source by       = { ORIGIN_OPTION, is_stdio ? "--stdio" : "--transport", true };

	if (!is_stdio && strcmp(value, "http") != 0 && strcmp(value, "stdio") != 0)
		return err_set(e, ERR_BAD_SPEC, "--transport: expected stdio or http, not \"%.40s\"", value);
	return setting_set(into, SETTING_http, &by, !is_stdio && *value == 'h' ? "true" : "false", e);
}

static const char *const others[] = {
	[SETTING_TOOLS_HINTS] = "hints", [SETTING_TOOLS_ALLOW] = "allow", [SETTING_TOOLS_ASK] = "ask", [SETTING_TOOLS_DENY] = "deny", NULL,
};

/* What a row has beside its line in settings.def. A switch takes an optional value after '='. */
#define CHOICES(id) \
	(id) == SETTING_reply ? replies : (id) == SETTING_imports ? imports : (id) == SETTING_server ? servers : (id) == SETTING_other_tools ? others : NULL
#define ARG(id, type) (id) == SETTING_token || (id) == SETTING_servers || (id) == SETTING_tool_audit ? "FILE" : (id) == SETTING_artifacts ? "DIR" : (type) == FIELD_BOOL ? "" : NULL
#define AT(member)    offsetof(struct settings, member)

const struct option_row setting_rows[] = {
#define SETTING(member, type, option, older, min, max, preset, doc) \
	[SETTING_##member] = { { option, type, AT(member), min, max, FIELD_UNSET, doc, CHOICES(SETTING_##member), NULL }, 0, ARG(SETTING_##member, type), set_from_option, false },
#include "settings.def"
	OPTION_SWITCH("check", 0, AT(check), "Run one program as a client would, and print the result"),
	OPTION_SWITCH("print-config", 0, AT(print_config), "Print each setting, and where it comes from"),
	OPTION_TEXT("config", 0, AT(config), "FILE", "Read this configuration file"),
	{ { "stdio", FIELD_BOOL, 0, 0, 1, 0, "Serve on standard input and output; the default", NULL, NULL }, 0, NULL, set_from_transport, false },
	{ { "transport", FIELD_STR, 0, 0, 0, 0, "The same as --stdio or --http", NULL, NULL }, 0, "stdio|http", set_from_transport, false },
	OPTION_SWITCH("version", 'V', AT(version), "Print the version"),
	OPTION_END,
};

int settings_parse_options(struct settings *s, int argc, char **argv, struct err *e)
{
	int taken = options_parse(setting_rows, argc, argv, s, e);

	s->help = taken == OPTIONS_HELP;
	if (taken >= 0 && taken + 1 < argc)
		return err_set(e, ERR_BAD_SPEC, "\"%.60s\" is not an option, and brig-mcp takes no other arguments; see --help", argv[taken + 1]);
	return taken == OPTIONS_FAILED ? -1 : 0;
}

static void print_comma_list(const json_t *list, FILE *out)
{
	size_t  i;
	json_t *item;

	json_array_foreach(list, i, item)
		fprintf(out, "%s%s", i ? "," : "", json_string_value(item));
}

static void print_token(const struct settings *s, FILE *out)
{
	if (s->token && *s->token)
		fprintf(out, "set (%zu characters)", strlen(s->token));
	else
		fputs(s->token_file ? "in a file; read for HTTP only" : "not set", out);
}

static void print_setting_value(const struct settings *s, enum setting_id id, FILE *out)
{
	const struct field *f = &setting_rows[id].field;

	if (id == SETTING_token)
		print_token(s, out);
	else if (f->type == FIELD_LIST)
		print_comma_list(*(json_t *const *)((const char *)s + f->offset), out);
	else
		field_print(f, s, out);
}

void settings_print(const struct settings *s, FILE *out)
{
	for (int id = 0; id < SETTING_COUNT; id++) {
		char  *value = NULL;
		size_t n;
		FILE  *to = open_memstream(&value, &n);

		if (!to)
			return;
		print_setting_value(s, (enum setting_id)id, to);
		fclose(to);
		fprintf(out, "%-18s  %-20s  %s\n", setting_rows[id].field.name, *value ? value : "-", s->where[id] ? s->where[id] : "default");
		free(value);
	}
}

/* --- what they can be --- */

void settings_print_help(FILE *out)
{
	fputs("usage: brig-mcp [OPTION]...\n\n"
	      "An MCP server that runs Python in jails. Clients start it, and talk to it over standard input and output:\n\n"
	      "  {\"mcpServers\":{\"python\":{\"command\":\"brig-mcp\",\"args\":[\"--reply\",\"text\"]}}}\n\n",
	      out);
	options_print(setting_rows + SETTING_COUNT, out);
	fputc('\n', out);
	for (int id = 0; id < SETTING_COUNT; id++) {
		const char *preset = setting_rows[id].field.type == FIELD_BOOL ? "" : setting_texts[id].preset;

		option_print(&setting_rows[id], out);
		fprintf(out, *preset ? " (%s)\n" : "\n", preset);
	}
	fputs("\nEach of these is also a variable, like BRIG_MCP_MAX_TIMEOUT, and a key of ~/.config/brig/mcp.json, like max_timeout; see brig-mcp(1).\n",
	      out);
}

void settings_print_mdoc(FILE *out)
{
	fputs(".Bl -tag -width Ds\n", out);
	for (int id = 0; id < SETTING_COUNT; id++) {
		const struct option_row    *row   = &setting_rows[id];
		const struct setting_texts *texts = &setting_texts[id];
		const char                 *arg   = option_arg_placeholder(row);

		fprintf(out, ".It Fl -%s%s%s\n%s.\n", row->field.name, *arg ? " Ar " : "", arg, row->field.doc);
		field_print_bounds(&row->field, true, out);
		if (*texts->preset && strcmp(texts->preset, "false") != 0)
			fprintf(out, "Default %s.\n", texts->preset);
		if (*texts->older)
			fprintf(out, id == SETTING_token ? ".Ev %s\nholds the secret itself.\n" : "Also\n.Ev %s .\n", texts->older);
	}
	fputs(".El\n", out);
}
