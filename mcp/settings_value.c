/* settings_value.c - the text of a setting becomes its value, if nobody stronger has spoken. */
#include "settings.h"
#include "text.h"

#include <inttypes.h>
#include <string.h>

/* A copy that lives as long as the settings. NULL with *e: it is not UTF-8. */
static const char *keep(struct settings *s, const char *text, size_t len, struct err *e)
{
	json_t *copy = json_stringn(text, len);

	if (copy && json_array_append_new(s->kept, copy) == 0)
		return json_string_value(copy);
	err_set(e, ERR_BAD_SPEC, "the text is not UTF-8");
	return NULL;
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

static int take_list(struct settings *s, const struct field *f, const char *text, struct err *e)
{
	json_t *list = json_array();

	if (json_array_append_new(s->kept, list) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (const char *p = text; *p;) {
		size_t len = strcspn(p, ",");

		if (add_entry(list, p, len, f->max, e) < 0)
			return -1;
		p += len + (p[len] == ',');
	}
	*(json_t **)((char *)s + f->offset) = list;
	return 0;
}

static int take_text(struct settings *s, const struct field *f, const char *text, struct err *e)
{
	const char *kept;

	if (text_has_control(text))
		return err_set(e, ERR_BAD_SPEC, "control characters are not allowed");
	if (!(kept = keep(s, text, strlen(text), e)))
		return -1;
	return field_from_text(f, kept, s, e);
}

/* The first of one place counts, but of options the last: people put theirs behind those of a script. */
static bool is_covered(const struct settings *s, enum setting_id id, enum setting_origin origin)
{
	return s->origin[id] > origin || (s->origin[id] == origin && origin != ORIGIN_OPTION && origin != ORIGIN_PRESET);
}

/* Ours name a file that holds the secret: what is typed can be seen by everybody. */
static int take(struct settings *s, enum setting_id id, const struct said *by, const char *text, struct err *e)
{
	static const struct field token_file = { .type = FIELD_STR, .offset = offsetof(struct settings, token_file), .max = FIELD_ANY };
	const struct field       *f          = &setting_rows[id].field;

	if (id == SETTING_token && by->where && !by->older)
		f = &token_file;
	if (f->type == FIELD_LIST)
		return take_list(s, f, text, e);
	return f->type == FIELD_STR || f->type == FIELD_NAME ? take_text(s, f, text, e) : field_from_text(f, text, s, e);
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
