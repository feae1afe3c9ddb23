#include "settings.h"

#include <stdlib.h>

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

int settings_status(const struct err *e)
{
	return e->kind == ERR_DENIED ? 1 : 2;
}
