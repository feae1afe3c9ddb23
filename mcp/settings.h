/*
 * settings.h - how one brig-mcp was told to work, and by whom.
 *
 * One row a setting (settings.def). What was said last does not count, but
 * who said it: an option over the environment, that over the file .env, that
 * over the configuration file, that over the preset. What a stronger one
 * covers is not looked at: a mistake there cannot be in the way.
 *
 * A setting has one name in three spellings: --max-timeout, the variable
 * BRIG_MCP_MAX_TIMEOUT, the key max_timeout. The SANDBOX_* names of the row
 * are variables too; ours goes before them.
 *
 * Values are written the same way everywhere: seconds ("30", "1.5", "250ms"),
 * sizes ("8K", "128m", bytes), true/false (1/0, yes/no, on/off), lists with
 * commas. A number, boolean or list of the configuration file stands for its
 * text. An empty text says nothing.
 */
#pragma once
#include "option.h"

#include <jansson.h>

enum setting_origin { ORIGIN_PRESET, ORIGIN_FILE, ORIGIN_DOTENV, ORIGIN_ENVIRONMENT, ORIGIN_OPTION };

/* What the struct has for a row. */
#define FIELD_BOOL_T   bool
#define FIELD_COUNT_T  uint64_t
#define FIELD_SIZE_T   uint64_t
#define FIELD_MS_T     uint64_t
#define FIELD_STR_T    const char *
#define FIELD_NAME_T   const char *
#define FIELD_CHOICE_T unsigned
#define FIELD_LIST_T   json_t * /* array of texts, blanks trimmed */

enum { REPLY_JSON, REPLY_TEXT };
enum { IMPORTS_ADVISE, IMPORTS_ENFORCE };
/* Of other_tools, as in tool_policy.h. */
enum { SETTING_TOOLS_HINTS, SETTING_TOOLS_ALLOW, SETTING_TOOLS_ASK, SETTING_TOOLS_DENY };
enum { SETTING_SERVER_ANY, SETTING_SERVER_PRIVATE, SETTING_SERVER_SERVICE };

enum setting_id {
#define SETTING(member, type, option, older, min, max, preset, doc) SETTING_##member,
#include "settings.def"
	SETTING_COUNT,
};

#define SETTINGS_VARIABLE  "BRIG_MCP_"
#define SETTINGS_CONFIG_VARIABLE SETTINGS_VARIABLE "CONFIG" /* as --config */
#define SETTINGS_TOKEN_MIN 32         /* characters */
#define SETTINGS_FILE_MAX  (64 * KIB) /* of .env, and of the configuration file */
#define SETTING_NAME_MAX   64         /* as it is spelt anywhere */

struct settings {
#define SETTING(member, type, option, older, min, max, preset, doc) type##_T member;
#include "settings.def"
	enum setting_origin origin[SETTING_COUNT];
	const char         *where[SETTING_COUNT]; /* "--timeout", "SANDBOX_TIMEOUT in the environment"; NULL of a preset */
	json_t             *kept;                 /* what the texts above are borrowed from */
	json_t             *notes;                /* texts for stderr: what is no mistake, but should be known */
	const char         *config;               /* --config */
	const char         *token_file;           /* where the token is to be read from; NULL: it was said itself, or not. What is typed, everybody can see */
	/* What is done, instead of serving. */
	bool                print_config, check, help, version;
};

/* Presets alone. */
void settings_init(struct settings *s);
void settings_done(struct settings *s);
#define scoped_settings scoped(settings_done) struct settings

/*
 * All sources in their order, then whether it makes sense together; the files
 * and the environment are read here. Whoever said --help or --version gets
 * that, whatever else is wrong. The error says where it was said and what to
 * write.
 */
must_use int settings_load(struct settings *s, int argc, char **argv, struct err *e);
/* What brig-mcp exits with after settings_load() has failed: 2, or 1 where an HTTP server has no token, or a weak one. */
int          settings_status(const struct err *e);

void settings_print(const struct settings *s, FILE *out); /* --print-config: each value and where it comes from */
void settings_help(FILE *out);                            /* --help */
void settings_print_mdoc(FILE *out);                      /* the same for the manual */

/* After this neither a program that we start nor its /proc knows the token; settings_load() has it no more either. */
void settings_hide_token(void);

/* --- the parts of settings_load(); pure --- */

/* By id; behind them what only the command line has. Ends with a NULL name. */
extern const struct option_row setting_rows[];
extern const struct setting_texts {
	const char *older; /* names of variables, separated by spaces */
	const char *preset;
} setting_texts[SETTING_COUNT];

enum setting_spelling { SPELT_OPTION, SPELT_VARIABLE, SPELT_KEY };
char *setting_name(enum setting_id id, enum setting_spelling how, char *buf, size_t len); /* returns buf */
int   setting_find(enum setting_spelling how, const char *name);    /* an id, or -1 */
int   setting_nearest(enum setting_spelling how, const char *name); /* what may have been meant, or -1 */

bool settings_is_ours(const char *variable); /* BRIG_MCP_* and SANDBOX_* */

/* Who says it, and where in words that can stand before an error. */
struct said {
	enum setting_origin origin;
	const char         *where; /* NULL of a preset */
	bool                older; /* by a name that is not ours */
};
/* One value; nothing happens if somebody stronger has spoken. */
must_use int setting_say(struct settings *s, enum setting_id id, const struct said *by, const char *text, struct err *e);

must_use int settings_take_options(struct settings *s, int argc, char **argv, struct err *e);
/* names: variable -> text. lines: variable -> line of .env; NULL: the environment. */
must_use int settings_take_variables(struct settings *s, enum setting_origin origin, const json_t *names, const json_t *lines,
				     struct err *e);
must_use int settings_take_dotenv(struct settings *s, const char *bytes, size_t len, struct err *e);
must_use int settings_take_file(struct settings *s, const char *path, const char *bytes, size_t len, struct err *e);
must_use int settings_judge(struct settings *s, struct err *e); /* conflicts; settles what follows from other settings */
