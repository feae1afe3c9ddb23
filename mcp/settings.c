#include "settings.h"

#include "nearest.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const struct setting_texts setting_texts[SETTING_COUNT] = {
#define SETTING(member, type, option, older, min, max, preset, doc) [SETTING_##member] = { older, preset },
#include "settings.def"
};

/* "max-timeout" -> BRIG_MCP_MAX_TIMEOUT, max_timeout */
char *setting_name(enum setting_id id, enum setting_spelling how, char *buf, size_t len)
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

int setting_find(enum setting_spelling how, const char *name)
{
	char buf[SETTING_NAME_MAX];

	for (int id = 0; id < SETTING_COUNT; id++)
		if (strcmp(setting_name((enum setting_id)id, how, buf, sizeof buf), name) == 0)
			return id;
	return -1;
}

int setting_nearest(enum setting_spelling how, const char *name)
{
	unsigned least = NEAREST_FAR, d;
	int      best  = -1;
	char     buf[SETTING_NAME_MAX];

	for (int id = 0; id < SETTING_COUNT; id++)
		if ((d = nearest_distance(setting_name((enum setting_id)id, how, buf, sizeof buf), name)) < least) {
			least = d;
			best  = id;
		}
	return best;
}

/* A row whose preset is no value of it is our own fault, which tests/unit/test_settings.c finds. */
void settings_init(struct settings *s)
{
	static const struct said nobody = { .origin = ORIGIN_PRESET };
	struct err               e;

	*s = (struct settings){ .kept = json_array(), .notes = json_array() };
	for (int id = 0; id < SETTING_COUNT; id++)
		if (setting_say(s, (enum setting_id)id, &nobody, setting_texts[id].preset, &e) < 0)
			abort();
}

void settings_done(struct settings *s)
{
	json_decref(s->kept);
	json_decref(s->notes);
	*s = (struct settings){ 0 };
}

int settings_status(const struct err *e)
{
	return e->kind == ERR_DENIED ? 1 : 2;
}
