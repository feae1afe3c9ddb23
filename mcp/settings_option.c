/* settings_option.c - the rows of the settings, as options; and what else the command line can say. */
#include "settings.h"

#include <stddef.h>
#include <string.h>

static const char *const replies[] = { [REPLY_JSON] = "json", [REPLY_TEXT] = "text", NULL };
static const char *const imports[] = { [IMPORTS_ADVISE] = "advise", [IMPORTS_ENFORCE] = "enforce", NULL };
static const char *const servers[] = {
	[SETTING_SERVER_ANY] = "any", [SETTING_SERVER_PRIVATE] = "private", [SETTING_SERVER_SERVICE] = "service", NULL,
};

static int say(void *into, const struct option_row *row, const char *value, struct err *e)
{
	enum setting_id   id = (enum setting_id)(row - setting_rows);
	char              where[SETTING_NAME_MAX];
	const struct said by = { ORIGIN_OPTION, setting_name(id, SPELT_OPTION, where, sizeof where), false };

	return setting_say(into, id, &by, value, e);
}

/* As the published server is started: --transport http. */
static int say_transport(void *into, const struct option_row *row, const char *value, struct err *e)
{
	static const struct said by = { ORIGIN_OPTION, "--transport", true };

	(void)row;
	if (strcmp(value, "http") != 0 && strcmp(value, "stdio") != 0)
		return err_set(e, ERR_BAD_SPEC, "--transport: \"%.40s\" is none of stdio, http", value);
	return setting_say(into, SETTING_http, &by, *value == 'h' ? "true" : "false", e);
}

static int say_stdio(void *into, const struct option_row *row, const char *value, struct err *e)
{
	static const struct said by = { ORIGIN_OPTION, "--stdio", true };

	(void)row, (void)value;
	return setting_say(into, SETTING_http, &by, "false", e);
}

/* What a row has beside its line in settings.def, by its place. A switch takes a value behind '='. */
#define CHOICES(id)   (id) == SETTING_reply ? replies : (id) == SETTING_imports ? imports : (id) == SETTING_server ? servers : NULL
#define ARG(id, type) (id) == SETTING_token ? "FILE" : (type) == FIELD_BOOL ? "" : NULL
#define AT(member)    offsetof(struct settings, member)

const struct option_row setting_rows[] = {
#define SETTING(member, type, option, older, min, max, preset, doc) \
	[SETTING_##member] = { { option, type, AT(member), min, max, FIELD_UNSAID, doc, CHOICES(SETTING_##member), NULL }, 0, ARG(SETTING_##member, type), say },
#include "settings.def"
	OPTION_SWITCH("check", 0, AT(check), "Run one program as a client would, and tell what came of it"),
	OPTION_SWITCH("print-config", 0, AT(print_config), "Print each setting, and who said it"),
	OPTION_TEXT("config", 0, AT(config), "FILE", "Read this configuration file"),
	{ { "stdio", FIELD_BOOL, 0, 0, 1, 0, "Serve on standard input and output: what it does when nothing is said", NULL, NULL }, 0, NULL, say_stdio },
	{ { "transport", FIELD_STR, 0, 0, 0, 0, "The same as --stdio or --http", NULL, NULL }, 0, "stdio|http", say_transport },
	OPTION_SWITCH("version", 'V', AT(version), "Which brig-mcp this is"),
	OPTION_END,
};

int settings_take_options(struct settings *s, int argc, char **argv, struct err *e)
{
	int taken = options_parse(setting_rows, argc, argv, s, e);

	s->help = taken == OPTIONS_HELP;
	if (taken >= 0 && taken + 1 < argc)
		return err_set(e, ERR_BAD_SPEC, "\"%.60s\" is no option, and brig-mcp takes nothing else; see --help", argv[taken + 1]);
	return taken == OPTIONS_FAILED ? -1 : 0;
}
