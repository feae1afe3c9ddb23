/* settings_print.c - the settings in words: what they are now, and what they can be. */
#include "settings.h"
#include "text.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const char *setting_type_words(enum setting_type type)
{
	static const char *const words[] = {
		[SET_BOOL]   = "true or false",
		[SET_COUNT]  = "a whole number",
		[SET_SIZE]   = "bytes, or a size like \"64M\"",
		[SET_MS]     = "seconds, like 30 or 0.5",
		[SET_TEXT]   = "text",
		[SET_NAME]   = "a name",
		[SET_CHOICE] = "a text of a list",
		[SET_LIST]   = "a list of texts, none with a comma in it",
		[SET_SECRET] = "the path of a file",
	};

	return words[type];
}

static const char *argument_of(const struct setting_row *row)
{
	static const char *const words[] = {
		[SET_BOOL] = NULL,   [SET_COUNT] = "N",      [SET_SIZE] = "SIZE", [SET_MS] = "SECONDS",  [SET_TEXT] = "TEXT",
		[SET_NAME] = "NAME", [SET_CHOICE] = "CHOICE", [SET_LIST] = "LIST", [SET_SECRET] = "FILE",
	};

	return words[row->type];
}

static void print_number(enum setting_type type, uint64_t x, char *buf, size_t len)
{
	if (type == SET_SIZE)
		text_from_size(x, buf, len);
	else if (type == SET_MS)
		text_from_milli(x, buf, len);
	else
		snprintf(buf, len, "%" PRIu64, x);
}

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
	static const size_t offsets[] = {
#define SETTING(member, type, option, older, min, max, preset, doc) [SETTING_##member] = offsetof(struct settings, member),
#include "settings.def"
	};
	const void *at = (const char *)s + offsets[id];
	char        buf[32];

	switch (setting_rows[id].type) {
	case SET_BOOL:
		fputs(*(const bool *)at ? "true" : "false", out);
		return;
	case SET_COUNT:
	case SET_SIZE:
	case SET_MS:
		print_number(setting_rows[id].type, *(const uint64_t *)at, buf, sizeof buf);
		fputs(buf, out);
		return;
	case SET_TEXT:
	case SET_NAME:
		fputs(*(const char *const *)at, out);
		return;
	case SET_CHOICE:
		fputs(setting_rows[id].choices[*(const unsigned *)at], out);
		return;
	case SET_LIST:
		print_list(*(json_t *const *)at, out);
		return;
	case SET_SECRET:
		print_token(s, out);
		return;
	}
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
		fprintf(out, "%-18s  %-20s  %s\n", setting_rows[id].option, *value ? value : "-", s->where[id] ? s->where[id] : "preset");
		free(value);
	}
}

/* --- what they can be --- */

static void print_option(const struct setting_row *row, FILE *out)
{
	const char *arg = argument_of(row);
	char        left[64];

	snprintf(left, sizeof left, "--%s%s%s", row->option, arg ? " " : "", arg ? arg : "");
	fprintf(out, "  %-26s %s", left, row->doc);
	if (*row->preset && row->type != SET_BOOL)
		fprintf(out, " (%s)", row->preset);
	fputc('\n', out);
}

void settings_help(FILE *out)
{
	fputs("usage: brig-mcp [OPTION]...\n\n"
	      "An MCP server that runs Python in jails. Without options it speaks over stdin and stdout, as clients start it:\n\n"
	      "  {\"mcpServers\":{\"python\":{\"command\":\"brig-mcp\"}}}\n\n"
	      "  --check                    Run one program as a client would, and tell what came of it\n"
	      "  --print-config             Print each setting, and who said it\n"
	      "  --config FILE              Read this configuration file\n"
	      "  --stdio                    Serve on standard input and output: what it does when nothing is said\n"
	      "  --transport stdio|http     The same as --stdio or --http\n",
	      out);
	for (int id = 0; id < SETTING_COUNT; id++)
		print_option(&setting_rows[id], out);
	fputs("  -h, --help                 This text\n"
	      "  -V, --version              Which brig-mcp this is\n\n"
	      "Each is also a variable, like BRIG_MCP_MAX_TIMEOUT, and a key of ~/.config/brig/mcp.json, like max_timeout; see brig-mcp(1).\n",
	      out);
}

static void print_bounds(const struct setting_row *row, FILE *out)
{
	char least[32], most[32];

	if (row->type == SET_COUNT || row->type == SET_SIZE || row->type == SET_MS) {
		print_number(row->type, row->min, least, sizeof least);
		print_number(row->type, row->max, most, sizeof most);
		fprintf(out, "From %s to %s, preset %s.\n", least, most, row->preset);
	} else if (row->type == SET_CHOICE) {
		for (int i = 0; row->choices[i]; i++)
			fprintf(out, i ? ", %s" : "One of %s", row->choices[i]);
		fprintf(out, "; preset %s.\n", row->preset);
	} else if (*row->preset && strcmp(row->preset, "false") != 0) {
		fprintf(out, "Preset %s.\n", row->preset);
	}
}

void settings_print_mdoc(FILE *out)
{
	fputs(".Bl -tag -width Ds\n", out);
	for (int id = 0; id < SETTING_COUNT; id++) {
		const struct setting_row *row = &setting_rows[id];
		const char               *arg = argument_of(row);

		fprintf(out, ".It Fl -%s%s%s\n%s.\n", row->option, arg ? " Ar " : "", arg ? arg : "", row->doc);
		print_bounds(row, out);
		if (*row->older)
			fprintf(out, row->type == SET_SECRET ? ".Ev %s\nholds the secret itself.\n" : "Also\n.Ev %s .\n", row->older);
	}
	fputs(".El\n", out);
}
