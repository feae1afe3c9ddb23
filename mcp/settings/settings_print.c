/* settings_print.c - the settings in words: what they are now, and what they can be. */
#include "settings.h"

#include <stdlib.h>
#include <string.h>

static void print_list(const json_t *list, FILE *out)
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

static void print_value(const struct settings *s, enum setting_id id, FILE *out)
{
	const struct field *f = &setting_rows[id].field;

	if (id == SETTING_token)
		print_token(s, out);
	else if (f->type == FIELD_LIST)
		print_list(*(json_t *const *)((const char *)s + f->offset), out);
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
		print_value(s, (enum setting_id)id, to);
		fclose(to);
		fprintf(out, "%-18s  %-20s  %s\n", setting_rows[id].field.name, *value ? value : "-", s->where[id] ? s->where[id] : "default");
		free(value);
	}
}

/* --- what they can be --- */

void settings_help(FILE *out)
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
		const char                 *arg   = option_arg(row);

		fprintf(out, ".It Fl -%s%s%s\n%s.\n", row->field.name, *arg ? " Ar " : "", arg, row->field.doc);
		field_print_bounds(&row->field, true, out);
		if (*texts->preset && strcmp(texts->preset, "false") != 0)
			fprintf(out, "Default %s.\n", texts->preset);
		if (*texts->older)
			fprintf(out, id == SETTING_token ? ".Ev %s\nholds the secret itself.\n" : "Also\n.Ev %s .\n", texts->older);
	}
	fputs(".El\n", out);
}
