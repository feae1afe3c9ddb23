/*
 * settings.h - how one brig-mcp was told to work, and by whom.
 *
 * One row a setting (settings.def). What was said last does not count, but
 * who said it: an option over the environment, that over the file .env, that
 * over the configuration file, that over the preset.
 */
#pragma once
#include "err.h"

#include <jansson.h>
#include <stdio.h>

enum setting_type {
	SET_BOOL,   /* bool */
	SET_COUNT,  /* uint64_t */
	SET_SIZE,   /* uint64_t bytes */
	SET_MS,     /* uint64_t; written in seconds */
	SET_TEXT,   /* const char * */
	SET_NAME,   /* const char *, see text_is_name() */
	SET_CHOICE, /* unsigned */
	SET_LIST,   /* json_t *: array of texts, blanks trimmed */
	SET_SECRET, /* const char *; never printed */
};

enum setting_origin { ORIGIN_PRESET, ORIGIN_FILE, ORIGIN_DOTENV, ORIGIN_ENVIRONMENT, ORIGIN_OPTION };

#define SET_BOOL_T   bool
#define SET_COUNT_T  uint64_t
#define SET_SIZE_T   uint64_t
#define SET_MS_T     uint64_t
#define SET_TEXT_T   const char *
#define SET_NAME_T   const char *
#define SET_CHOICE_T unsigned
#define SET_LIST_T   json_t *
#define SET_SECRET_T const char *

enum { REPLY_JSON, REPLY_TEXT };
enum { IMPORTS_ADVISE, IMPORTS_ENFORCE };
enum { SETTING_SERVER_ANY, SETTING_SERVER_PRIVATE, SETTING_SERVER_SERVICE };

enum setting_id {
#define SETTING(member, type, option, older, min, max, preset, doc) SETTING_##member,
#include "settings.def"
	SETTING_COUNT,
};

struct settings {
#define SETTING(member, type, option, older, min, max, preset, doc) type##_T member;
#include "settings.def"
	enum setting_origin origin[SETTING_COUNT];
	json_t             *kept; /* what the texts above are borrowed from */
	/* What is done, instead of serving. */
	bool                print_config, check, help, version;
};

/* Presets alone. */
void settings_init(struct settings *s);
void settings_done(struct settings *s);

/* All sources in their order. argv: the options; environ and the files are read here. */
must_use int settings_load(struct settings *s, int argc, char **argv, struct err *e);
void         settings_print(const struct settings *s, FILE *out); /* --print-config: each value and where it comes from */
