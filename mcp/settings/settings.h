/*
 * settings.h - the settings of a brig-mcp, and where each comes from.
 *
 * There is one row for each setting (settings.def). A setting may be given in several places. The strongest one counts, not the
 * last: an option before the environment, then the file .env, then the configuration file, then the preset; but a token of
 * .env comes behind that of the configuration file. A value that a stronger place overrides is not parsed, so a mistake in it
 * does no harm.
 *
 * A setting has one name in three spellings: --max-timeout, the variable BRIG_MCP_MAX_TIMEOUT, the key max_timeout. The
 * SANDBOX_* names of the row are variables, too, but BRIG_MCP_* comes before them.
 *
 * Values are written the same way everywhere: seconds ("30", "1.5", "250ms"), sizes ("8K", "128m", bytes), true/false (1/0,
 * yes/no, on/off), lists with commas. A number, boolean or list in the configuration file is taken as its text. An empty text
 * counts as not given.
 */
#pragma once
#include "option.h"

#include <jansson.h>

enum setting_origin { ORIGIN_PRESET, ORIGIN_FILE, ORIGIN_DOTENV, ORIGIN_ENVIRONMENT, ORIGIN_OPTION };

/* Types of the members of the struct. */
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
/* Values of other_tools, as in tool_policy.h. */
enum { SETTING_TOOLS_HINTS, SETTING_TOOLS_ALLOW, SETTING_TOOLS_ASK, SETTING_TOOLS_DENY };

enum setting_id {
#define SETTING(member, type, option, older, min, max, preset, doc) SETTING_##member,
#include "settings.def"
	SETTING_COUNT,
};

#define SETTINGS_VARIABLE  "BRIG_MCP_"
#define SETTINGS_CONFIG_VARIABLE SETTINGS_VARIABLE "CONFIG" /* as --config */
#define SETTINGS_TOKEN_MIN 32         /* characters */
#define SETTINGS_FILE_MAX  (64 * KIB) /* of .env, and of the configuration file */
#define SETTING_NAME_MAX   64         /* in any spelling */

struct settings {
#define SETTING(member, type, option, older, min, max, preset, doc) type##_T member;
#include "settings.def"
	enum setting_origin origin[SETTING_COUNT];
	const char         *where[SETTING_COUNT]; /* "--timeout", "SANDBOX_TIMEOUT in the environment"; NULL: a preset */
	json_t             *kept;                 /* owns the texts above */
	json_t             *notes;                /* texts for stderr, about what is no mistake but should be known */
	const char         *config;               /* --config */
	const char         *token_file;           /* the file that holds the token, as others could see a token that is typed; NULL: none was named */
	/* What to do instead of serving. */
	bool                print_config, check, help, version;
};

/* Presets alone. */
void settings_init(struct settings *s);
void settings_done(struct settings *s);
#define scoped_settings scoped(settings_done) struct settings

/*
 * Reads all sources, strongest first, then checks whether the settings fit together; the files and the environment are read
 * here. With --help or --version only the options are read. *e has where a mistake was made and what to write.
 */
must_use int settings_load(struct settings *s, int argc, char **argv, struct err *e);
/* The exit status after settings_load() has failed: 2, or 1 if an HTTP server has no token, or a weak one. */
int          settings_exit_status(const struct err *e);

void settings_print(const struct settings *s, FILE *out); /* --print-config: each value and where it comes from */
void settings_print_help(FILE *out);                            /* --help */
void settings_print_mdoc(FILE *out);                      /* the same for the manual */

/* Removes the token from the environment, so that programs that are started later do not get it. A later settings_load() does not find it. */
void settings_unset_token_variable(void);

/* --- the parts of settings_load(); pure --- */

/* By id; after those, options that exist only on the command line. Ends with a NULL name. */
extern const struct option_row setting_rows[];
extern const struct setting_texts {
	const char *older; /* names of variables, separated by spaces */
	const char *preset;
} setting_texts[SETTING_COUNT];

enum setting_spelling { SPELT_OPTION, SPELT_VARIABLE, SPELT_KEY };
char *setting_spell_name(enum setting_id id, enum setting_spelling how, char *buf, size_t len); /* returns buf */
int   setting_find_by_name(enum setting_spelling how, const char *name);    /* an id, or -1 */
int   setting_find_nearest(enum setting_spelling how, const char *name); /* an id with a similar name, or -1 */

bool settings_is_own_variable(const char *variable); /* BRIG_MCP_* and SANDBOX_* */

/* Where a value comes from, as a text that can stand before an error. */
struct setting_source {
	enum setting_origin origin;
	const char         *where; /* NULL of a preset */
	bool                older; /* by a name that is not brig's */
};
/* Sets one value; does nothing if a stronger place has set it. */
must_use int setting_set(struct settings *s, enum setting_id id, const struct setting_source *by, const char *text, struct err *e);

must_use int settings_parse_options(struct settings *s, int argc, char **argv, struct err *e);
/* names: variable -> text. lines: variable -> line of .env; NULL: the environment. */
must_use int settings_set_from_variables(struct settings *s, enum setting_origin origin, const json_t *names, const json_t *lines,
				     struct err *e);
must_use int settings_parse_dotenv(struct settings *s, const char *bytes, size_t len, struct err *e);
must_use int settings_parse_json(struct settings *s, const char *path, const char *bytes, size_t len, struct err *e);
must_use int settings_judge(struct settings *s, struct err *e); /* refuses conflicts; sets what follows from other settings */

/* --- the file .env; pure --- */

/*
 * The file .env: NAME=VALUE a line, read and never executed.
 *
 *   # a comment, and empty lines             are skipped
 *   [export] NAME = VALUE                    blanks around each of them are dropped
 *   VALUE without quotes                     up to the end of the line, or to a # after a blank
 *   'VALUE'                                  as it is, up to the next '; may span lines
 *   "VALUE"                                  likewise, with \n \t \r \" \\ \$
 *
 * $NAME and `command` are not expanded. Such files have lines for other programs, in the syntax of those: a line that cannot be
 * read is reported with its number and its name, if it has one, and reading goes on with the next.
 */
struct dotenv {
	const char *at, *end;
	unsigned    line; /* number of the line of the last row; 0: none was read yet */
	unsigned    next; /* number of the next line; the first one is 1 */
	char       *name, *value; /* of the last row; owned. name is "" if none could be read, value is NULL after DOTENV_BAD */
};

enum dotenv_step { DOTENV_END, DOTENV_ROW, DOTENV_BAD };

/* bytes: borrowed until dotenv_done(). */
void dotenv_init(struct dotenv *d, const char *bytes, size_t len);
void dotenv_done(struct dotenv *d);
/* BAD: *e has what is wrong with line d->line. If memory is short the reading ends, with *e of kind LIMIT. */
must_use enum dotenv_step dotenv_next(struct dotenv *d, struct err *e);
#define scoped_dotenv scoped(dotenv_done) struct dotenv
