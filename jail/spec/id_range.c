#include "id_range.h"

#include "text.h"

#include <string.h>

struct line {
	const char *name;
	size_t      name_len;
	uint64_t    base, count;
};

/* "name:base:count\n". Lines of another shape hand out nothing; a name may be as long as it likes. */
static bool parse_line(const char *text, size_t len, struct line *ret)
{
	const char *colon = memchr(text, ':', len);
	size_t      rest  = colon ? len - (size_t)(colon + 1 - text) : 0;
	char        base[64], *count;

	if (!colon || rest >= sizeof base)
		return false;
	memcpy(base, colon + 1, rest);
	base[rest] = 0;
	count      = strchr(base, ':');
	if (!count)
		return false;
	*count++      = 0;
	ret->name     = text;
	ret->name_len = (size_t)(colon - text);
	return text_to_u64(base, &ret->base) == 0 && text_to_u64(count, &ret->count) == 0;
}

/* Calls back for each line; stops at the first that answers true. */
static bool any_line(const char *text, bool (*match)(const struct line *, void *), void *arg)
{
	while (*text) {
		size_t      len = strcspn(text, "\n");
		struct line line;

		if (parse_line(text, len, &line) && match(&line, arg))
			return true;
		text += len + (text[len] == '\n');
	}
	return false;
}

static bool is_ours(const struct line *line, void *arg)
{
	struct id_range *r = arg;

	if (line->name_len != 4 || strncmp(line->name, "brig", 4) != 0 || line->base < 1000 || line->count < IDS_PER_CELL ||
	    line->base > UINT32_MAX - 1 || line->count > UINT32_MAX - line->base)
		return false;
	*r = (struct id_range){ (uint32_t)line->base, (uint32_t)line->count };
	return true;
}

static bool overlaps(const struct line *line, void *arg)
{
	const struct id_range *r = arg;

	/* Subtracted, not added: no count can wrap around. */
	return line->base < r->base ? line->count > r->base - line->base : line->count && line->base - r->base < r->count;
}

int id_range_choose(const char *subuid, const char *subgid, struct id_range *ret, struct err *e)
{
	struct id_range uids, gids, preset = { ID_RANGE_PRESET_BASE, ID_RANGE_PRESET_COUNT };

	if (any_line(subuid, is_ours, &uids)) {
		if (!any_line(subgid, is_ours, &gids) || gids.base != uids.base || gids.count < uids.count)
			return err_set(e, ERR_MISSING, "/etc/subgid: no range for brig that equals the one in /etc/subuid (brig:%u:%u)",
				       uids.base, uids.count);
		*ret = uids;
		return 0;
	}
	if (any_line(subuid, overlaps, &preset) || any_line(subgid, overlaps, &preset))
		return err_set(e, ERR_MISSING, "ids %u..%u are handed out in /etc/subuid or /etc/subgid; give brig its own: usermod "
			       "--add-subuids A-B --add-subgids A-B brig", preset.base, preset.base + preset.count - 1);
	*ret = preset;
	return 0;
}
