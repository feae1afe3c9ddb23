#include "id_range.h"

#include "text.h"

#include <stdio.h>
#include <string.h>

struct line {
	const char *name;
	size_t      name_len;
	uint64_t    base, count;
};

/* "name:base:count". Other lines are ignored. Only base and count are copied, so a name may have any length. */
static bool parse_subid_line(const char *text, size_t len, struct line *ret)
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

/* Calls match() for each line; true at the first for which it is true. */
static bool any_line_matches(const char *text, bool (*match)(const struct line *, void *), void *arg)
{
	while (*text) {
		size_t      len = strcspn(text, "\n");
		struct line line;

		if (parse_subid_line(text, len, &line) && match(&line, arg))
			return true;
		text += len + (text[len] == '\n');
	}
	return false;
}

static bool line_has_name(const struct line *line, const char *name)
{
	return name && strlen(name) == line->name_len && strncmp(line->name, name, line->name_len) == 0;
}

/* A line names a user by name or by uid, also in /etc/subgid. */
static bool line_is_of_user(const struct line *line, const struct id_user *user)
{
	char number[16];

	snprintf(number, sizeof number, "%u", user->uid);
	return line_has_name(line, user->name) || line_has_name(line, number);
}

/*
 * Argument of the match functions. range: found by match_own_range(), or given to match_foreign_overlap(), which sets
 * `other` to the name in the line.
 */
struct search {
	const struct id_user *user;
	struct id_range       range;
	char                  other[40];
};

static bool match_own_range(const struct line *line, void *arg)
{
	struct search *s = arg;

	if (!line_is_of_user(line, s->user) || line->base < 1000 || line->count < IDS_PER_CELL ||
	    line->base > UINT32_MAX - 1 ||
	    line->count > UINT32_MAX - line->base)
		return false;
	s->range = (struct id_range){ (uint32_t)line->base, (uint32_t)line->count };
	return true;
}

static bool range_overlaps(const struct id_range *r, uint64_t base, uint64_t count)
{
	/* Subtraction instead of addition, which a large count could make wrap around. */
	return base < r->base ? count > r->base - base : count && base - r->base < r->count;
}

static bool match_foreign_overlap(const struct line *line, void *arg)
{
	struct search *s = arg;

	if (line_is_of_user(line, s->user) || !range_overlaps(&s->range, line->base, line->count))
		return false;
	snprintf(s->other, sizeof s->other, "%.*s", line->name_len < 32 ? (int)line->name_len : 32, line->name);
	return true;
}

static int check_range_is_unshared(const char *file, const char *text, struct search *s, struct err *e)
{
	if (!any_line_matches(text, match_foreign_overlap, s))
		return 0;
	return err_set(e, ERR_MISSING, "%s gives ids of %u..%u to %s as well: each user needs a range of their own", file, s->range.base,
		       s->range.base + s->range.count - 1, s->other);
}

int id_range_choose(const char *subuid, const char *subgid, struct id_range *ret, struct err *e)
{
	const struct id_user brig = { .name = "brig", .uid = UINT32_MAX };
	struct search        preset = { &brig, { ID_RANGE_PRESET_BASE, ID_RANGE_PRESET_COUNT }, "" };
	struct search        uids = { .user = &brig }, gids = { .user = &brig };

	if (any_line_matches(subuid, match_own_range, &uids)) {
		if (!any_line_matches(subgid, match_own_range, &gids) || gids.range.base != uids.range.base ||
		    gids.range.count < uids.range.count)
			return err_set(e, ERR_MISSING, "/etc/subgid: no range for brig that equals the one in /etc/subuid (brig:%u:%u)",
				       uids.range.base, uids.range.count);
		if (check_range_is_unshared("/etc/subuid", subuid, &uids, e) < 0 ||
		    check_range_is_unshared("/etc/subgid", subgid, &gids, e) < 0)
			return -1;
		*ret = uids.range;
		return 0;
	}
	if (any_line_matches(subuid, match_foreign_overlap, &preset) ||
	    any_line_matches(subgid, match_foreign_overlap, &preset))
		return err_set(e, ERR_MISSING, "ids %u..%u are handed out in /etc/subuid or /etc/subgid; give brig its own: usermod "
			       "--add-subuids A-B --add-subgids A-B brig", preset.range.base, preset.range.base + preset.range.count - 1);
	*ret = preset.range;
	return 0;
}

/* Neither the user's own id is in it, nor an id of another user's range. */
static int find_range_not_shared(const char *file, const char *text, struct search *s, uint32_t own_id, struct err *e)
{
	if (!any_line_matches(text, match_own_range, s))
		return err_set(e, ERR_MISSING, "%s has no line for %s", file, s->user->name ? s->user->name : "this user");
	if (range_overlaps(&s->range, own_id, 1))
		return err_set(e, ERR_MISSING, "%s gives %s ids that include the user's own id %u", file, s->user->name ? s->user->name : "this user", own_id);
	return check_range_is_unshared(file, text, s, e);
}

int id_range_of_user(const char *subuid, const char *subgid, const struct id_user *user, struct id_range *uids, struct id_range *gids,
		     struct err *e)
{
	struct search u = { .user = user }, g = { .user = user };
	uint32_t      count;

	if (find_range_not_shared("/etc/subuid", subuid, &u, user->uid, e) < 0 ||
	    find_range_not_shared("/etc/subgid", subgid, &g, user->gid, e) < 0)
		return -1;
	count = u.range.count < g.range.count ? u.range.count : g.range.count;
	*uids = (struct id_range){ u.range.base, count };
	*gids = (struct id_range){ g.range.base, count };
	return 0;
}

static bool move_range_past_line(const struct line *line, void *arg)
{
	struct id_range *r = arg;

	if (!range_overlaps(r, line->base, line->count))
		return false;
	r->base = line->base < ID_RANGE_PRESET_BASE && line->count < ID_RANGE_PRESET_BASE - line->base ?
		  (uint32_t)(line->base + line->count) : ID_RANGE_PRESET_BASE;
	return true;
}

int id_range_find_free(const char *subuid, const char *subgid, struct id_range *ret)
{
	struct id_range r = { .base = 100000, .count = 65536 };

	while (any_line_matches(subuid, move_range_past_line, &r) || any_line_matches(subgid, move_range_past_line, &r))
		if (r.base > ID_RANGE_PRESET_BASE - r.count)
			return -1;
	*ret = r;
	return 0;
}
