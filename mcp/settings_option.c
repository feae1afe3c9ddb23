/* settings_option.c - the command line: --name VALUE and --name=VALUE; switches take a value only behind '='. */
#include "nearest.h"
#include "settings.h"

#include <stddef.h>
#include <string.h>

struct word {
	const char *name;   /* as far as it goes: without "--" and "=VALUE" */
	size_t      len;
	const char *value;  /* behind '=', or NULL */
	const char *next;   /* the word behind it, or NULL */
	bool        eaten;  /* next was the value */
};

/* What to do instead of serving. */
static const struct {
	const char *name;
	char        letter;
	size_t      offset;
} deeds[] = {
	{ "check", 0, offsetof(struct settings, check) },
	{ "print-config", 0, offsetof(struct settings, print_config) },
	{ "help", 'h', offsetof(struct settings, help) },
	{ "version", 'V', offsetof(struct settings, version) },
};

static bool is(const struct word *w, const char *name)
{
	return strlen(name) == w->len && memcmp(name, w->name, w->len) == 0;
}

static bool *find_deed(struct settings *s, const struct word *w)
{
	for (size_t i = 0; i < ARRAY_LEN(deeds); i++)
		if (is(w, deeds[i].name) || (w->len == 1 && w->name[0] == deeds[i].letter))
			return (bool *)((char *)s + deeds[i].offset);
	return NULL;
}

static int need_value(struct word *w, struct err *e)
{
	if (w->value)
		return 0;
	if (!w->next)
		return err_set(e, ERR_BAD_SPEC, "--%.*s: needs a value; see --help", (int)w->len, w->name);
	w->value = w->next;
	w->eaten = true;
	return 0;
}

static int take_setting(struct settings *s, enum setting_id id, struct word *w, struct err *e)
{
	char              where[SETTING_NAME_MAX];
	const struct said by = { ORIGIN_OPTION, setting_name(id, SPELT_OPTION, where, sizeof where), false };

	if (setting_rows[id].type != SET_BOOL && need_value(w, e) < 0)
		return -1;
	return setting_say(s, id, &by, w->value ? w->value : "true", e);
}

/* As the published server is started: --transport http. */
static int take_transport(struct settings *s, struct word *w, struct err *e)
{
	static const struct said by = { ORIGIN_OPTION, "--transport", true };

	if (need_value(w, e) < 0)
		return -1;
	if (strcmp(w->value, "http") != 0 && strcmp(w->value, "stdio") != 0)
		return err_set(e, ERR_BAD_SPEC, "--transport: \"%.40s\" is not known; write stdio or http", w->value);
	return setting_say(s, SETTING_http, &by, *w->value == 'h' ? "true" : "false", e);
}

static int take_stdio(struct settings *s, const struct word *w, struct err *e)
{
	static const struct said by = { ORIGIN_OPTION, "--stdio", true };

	return w->value ? err_set(e, ERR_BAD_SPEC, "--stdio takes no value") : setting_say(s, SETTING_http, &by, "false", e);
}

static int refuse(const struct word *w, struct err *e)
{
	char name[SETTING_NAME_MAX + 16], near[SETTING_NAME_MAX];
	int  id;

	snprintf(name, sizeof name, "--%.*s", (int)w->len, w->name);
	for (size_t i = 0; i < ARRAY_LEN(deeds); i++)
		if (nearest_distance(deeds[i].name, name + 2) < 3)
			return err_set(e, ERR_BAD_SPEC, "%s: no such option; is it --%s? see --help", name, deeds[i].name);
	if ((id = setting_nearest(SPELT_OPTION, name)) < 0)
		return err_set(e, ERR_BAD_SPEC, "%s: no such option; see --help", name);
	return err_set(e, ERR_BAD_SPEC, "%s: no such option; is it %s? see --help", name,
		       setting_name((enum setting_id)id, SPELT_OPTION, near, sizeof near));
}

static int take_word(struct settings *s, struct word *w, struct err *e)
{
	char  name[SETTING_NAME_MAX + 16];
	bool *deed = find_deed(s, w);
	int   id;

	snprintf(name, sizeof name, "--%.*s", (int)w->len, w->name);
	if (deed && w->value)
		return err_set(e, ERR_BAD_SPEC, "%s takes no value", name);
	if (deed) {
		*deed = true;
		return 0;
	}
	if (is(w, "transport"))
		return take_transport(s, w, e);
	if (is(w, "stdio"))
		return take_stdio(s, w, e);
	if (is(w, "config")) {
		if (need_value(w, e) < 0)
			return -1;
		s->config = w->value;
		return 0;
	}
	id = setting_find(SPELT_OPTION, name);
	return id < 0 ? refuse(w, e) : take_setting(s, (enum setting_id)id, w, e);
}

static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] && ((word[1] == '-' && word[2]) || (word[1] != '-' && !word[2]));
}

int settings_take_options(struct settings *s, int argc, char **argv, struct err *e)
{
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i] + (is_option(argv[i]) ? 1 + (argv[i][1] == '-') : 0);
		struct word w    = { name, strcspn(name, "="), NULL, i + 1 < argc ? argv[i + 1] : NULL, false };

		if (!is_option(argv[i]))
			return err_set(e, ERR_BAD_SPEC, "\"%.60s\" is no option, and brig-mcp takes nothing else; see --help", argv[i]);
		if (name[w.len])
			w.value = name + w.len + 1;
		if (take_word(s, &w, e) < 0)
			return -1;
		i += w.eaten;
	}
	return 0;
}
