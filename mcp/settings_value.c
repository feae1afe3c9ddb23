/* settings_value.c - the text of a setting becomes its value, or a sentence about what to write. */
#include "field.h"
#include "settings.h"
#include "text.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

static const size_t offsets[SETTING_COUNT] = {
#define SETTING(member, type, option, older, min, max, preset, doc) [SETTING_##member] = offsetof(struct settings, member),
#include "settings.def"
};

static void *at(struct settings *s, enum setting_id id)
{
	return (char *)s + offsets[id];
}

/* A copy that lives as long as the settings. NULL with *e: it is not UTF-8. */
static const char *keep(struct settings *s, const char *text, size_t len, struct err *e)
{
	json_t *copy = json_stringn(text, len);

	if (copy && json_array_append_new(s->kept, copy) == 0)
		return json_string_value(copy);
	err_set(e, ERR_BAD_SPEC, "the text is not UTF-8");
	return NULL;
}

static int take_bool(struct settings *s, enum setting_id id, const char *text, struct err *e)
{
	static const struct {
		const char *word;
		bool        value;
	} words[] = { { "true", 1 }, { "false", 0 }, { "1", 1 }, { "0", 0 }, { "yes", 1 }, { "no", 0 }, { "on", 1 }, { "off", 0 } };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasecmp(words[i].word, text) == 0) {
			*(bool *)at(s, id) = words[i].value;
			return 0;
		}
	return err_set(e, ERR_BAD_SPEC, "\"%.40s\" is neither true nor false; write true or false", text);
}

static int take_number(struct settings *s, enum setting_id id, const char *text, struct err *e)
{
	static const enum field_type fields[] = { [SET_COUNT] = FIELD_COUNT, [SET_SIZE] = FIELD_SIZE, [SET_MS] = FIELD_MS };
	const struct setting_row    *row      = &setting_rows[id];
	struct field                 f = { .type = fields[row->type], .offset = offsets[id], .min = row->min, .max = row->max };

	return field_from_text(&f, text, s, e);
}

static int take_text(struct settings *s, enum setting_id id, const char *text, struct err *e)
{
	const char *kept;

	if (strlen(text) > setting_rows[id].max)
		return err_set(e, ERR_BAD_SPEC, "%zu characters; at most %" PRIu64 " are allowed", strlen(text), setting_rows[id].max);
	if (text_has_control(text))
		return err_set(e, ERR_BAD_SPEC, "control characters are not allowed");
	if (!(kept = keep(s, text, strlen(text), e)))
		return -1;
	*(const char **)at(s, id) = kept;
	return 0;
}

static int take_name(struct settings *s, enum setting_id id, const char *text, struct err *e)
{
	if (!text_is_name(text))
		return err_set(e, ERR_BAD_SPEC, "\"%.63s\" is no name; use a-z, 0-9, '-', '_', '.'", text);
	return take_text(s, id, text, e);
}

static int take_choice(struct settings *s, enum setting_id id, const char *text, struct err *e)
{
	char   list[120] = "";
	size_t n         = 0;

	for (unsigned i = 0; setting_rows[id].choices[i]; i++) {
		if (strcmp(setting_rows[id].choices[i], text) == 0) {
			*(unsigned *)at(s, id) = i;
			return 0;
		}
		if (n < sizeof list)
			n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", setting_rows[id].choices[i]);
	}
	return err_set(e, ERR_BAD_SPEC, "\"%.40s\" is not known; write one of: %s", text, list);
}

/* "math , json," has two entries. */
static int add_entry(json_t *list, const char *from, size_t len, uint64_t max, struct err *e)
{
	while (len && strchr(" \t\r\n", from[len - 1]))
		len--;
	for (; len && strchr(" \t\r\n", *from); len--)
		from++;
	if (!len)
		return 0;
	if (json_array_size(list) == max)
		return err_set(e, ERR_BAD_SPEC, "more than %" PRIu64 " entries", max);
	return json_array_append_new(list, json_stringn(from, len)) < 0 ? err_set(e, ERR_BAD_SPEC, "the text is not UTF-8") : 0;
}

static int take_list(struct settings *s, enum setting_id id, const char *text, struct err *e)
{
	json_t *list = json_array();

	if (json_array_append_new(s->kept, list) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (const char *p = text; *p;) {
		size_t len = strcspn(p, ",");

		if (add_entry(list, p, len, setting_rows[id].max, e) < 0)
			return -1;
		p += len + (p[len] == ',');
	}
	*(json_t **)at(s, id) = list;
	return 0;
}

/* The rows' types, in their order. */
static int (*const takers[])(struct settings *s, enum setting_id id, const char *text, struct err *e) = {
	[SET_BOOL] = take_bool, [SET_COUNT] = take_number,  [SET_SIZE] = take_number, [SET_MS] = take_number,   [SET_TEXT] = take_text,
	[SET_NAME] = take_name, [SET_CHOICE] = take_choice, [SET_LIST] = take_list,   [SET_SECRET] = take_text,
};

static int take_secret_file(struct settings *s, const char *text, struct err *e)
{
	const char *path = keep(s, text, strlen(text), e);

	if (!path)
		return -1;
	s->token_file = path;
	return 0;
}

/* The first of one place counts, but of options the last: people put theirs behind those of a script. */
static bool is_covered(const struct settings *s, enum setting_id id, enum setting_origin origin)
{
	return s->origin[id] > origin || (s->origin[id] == origin && origin != ORIGIN_OPTION && origin != ORIGIN_PRESET);
}

/* Ours name a file that holds the secret: what is typed can be seen by everybody. */
static int take(struct settings *s, enum setting_id id, const struct said *by, const char *text, struct err *e)
{
	bool is_file = setting_rows[id].type == SET_SECRET && by->where && !by->older;

	return is_file ? take_secret_file(s, text, e) : takers[setting_rows[id].type](s, id, text, e);
}

int setting_say(struct settings *s, enum setting_id id, const struct said *by, const char *text, struct err *e)
{
	const char *where = NULL;

	if (is_covered(s, id, by->origin) || (by->where && !*text))
		return 0;
	if (by->where && !(where = keep(s, by->where, strlen(by->where), e)))
		return -1;
	if (take(s, id, by, text, e) < 0)
		return where ? err_wrap(e, "%s", where) : -1;
	s->origin[id] = by->origin;
	s->where[id]  = where;
	return 0;
}
