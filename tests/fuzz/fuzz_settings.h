/* fuzz_settings.h - what holds of the settings of brig-mcp, wherever they were said */
#pragma once
#include "fuzz.h"
#include "settings.h"

#include <stddef.h>

static inline void must_keep_setting(const struct settings *s, int id)
{
	static const size_t offsets[] = {
#define SETTING(member, type, option, older, min, max, preset, doc) [SETTING_##member] = offsetof(struct settings, member),
#include "settings.def"
	};
	const struct setting_row *row = &setting_rows[id];
	const char               *at  = (const char *)s + offsets[id];

	must(!s->where[id] == (s->origin[id] == ORIGIN_PRESET));
	if (row->type == SET_COUNT || row->type == SET_SIZE || row->type == SET_MS)
		must(*(const uint64_t *)at >= row->min && *(const uint64_t *)at <= row->max);
	if (row->type == SET_LIST)
		must(json_array_size(*(json_t *const *)at) <= row->max);
	if (row->type == SET_TEXT || row->type == SET_SECRET)
		must(strlen(*(const char *const *)at) <= row->max);
	if (row->type == SET_NAME)
		must(text_is_name(*(const char *const *)at));
}

/* Of settings that were judged to make sense together. */
static inline void must_make_sense(const struct settings *s)
{
	for (int id = 0; id < SETTING_COUNT; id++)
		must_keep_setting(s, id);
	must(s->timeout_ms <= s->max_timeout_ms);
	must(!s->memory_bytes || s->memory_bytes >= 8 * MIB);
	must(!s->http || s->insecure_loopback || strlen(s->token) >= SETTINGS_TOKEN_MIN);
}
