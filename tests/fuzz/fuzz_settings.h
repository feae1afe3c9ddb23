/* fuzz_settings.h - what holds of the settings of brig-mcp, wherever they were said */
#pragma once
#include "fuzz.h"
#include "settings.h"

static inline void must_keep_setting(const struct settings *s, int id)
{
	const struct field *f  = &setting_rows[id].field;
	const char         *at = (const char *)s + f->offset;

	must(!s->where[id] == (s->origin[id] == ORIGIN_PRESET));
	if (field_is_number(f))
		must(*(const uint64_t *)at >= f->min && *(const uint64_t *)at <= f->max);
	if (f->type == FIELD_LIST)
		must(json_array_size(*(json_t *const *)at) <= f->max);
	if (f->type == FIELD_STR)
		must(strlen(*(const char *const *)at) <= f->max);
	if (f->type == FIELD_NAME)
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
