/* fuzz_id_range.c - any bytes as /etc/subuid, NUL, /etc/subgid: no id is taken that somebody else was given */
#include "fuzz.h"
#include "id_range.h"

#include <inttypes.h>

static void must_hold(const struct id_range *r)
{
	must(r->base >= 1000 && r->count >= IDS_PER_CELL && id_range_slots(r) > 0);
	must((uint64_t)r->base + r->count <= UINT32_MAX); /* the last id is no id: (uid_t)-1 */
}

/* Once more, slowly: does any line hand out an id of the range, but those that begin with `own` or `number`? */
static void must_be_nobodys(const struct id_range *r, const char *text, const char *own, const char *number)
{
	for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *colon = strchr(line, ':');
		uint64_t    base = 0, count = 0;
		int         end = 0;

		if (!colon || begins_with(line, own) || begins_with(line, number) || sscanf(colon, ":%19" SCNu64 ":%19" SCNu64 "%n", &base, &count, &end) != 2)
			continue;
		if (strspn(colon, ":0123456789") != (size_t)end || (colon[end] && colon[end] != '\n') || memchr(line, '\n', (size_t)(colon - line)))
			continue;
		must_about(line, count == 0 || base >= (uint64_t)r->base + r->count || (base < r->base && count <= r->base - base));
	}
}

static void must_be_found_again(const struct id_range *r)
{
	struct id_range again;
	struct err      e = { 0 };
	char            text[64];

	snprintf(text, sizeof text, "brig:%" PRIu32 ":%" PRIu32 "\n", r->base, r->count);
	must_about(text, id_range_choose(text, text, &again, &e) == 0 && again.base == r->base && again.count == r->count);
}

/* A plain user: as many of each, none that is himself, none that is another's. */
static void check_user(const char *subuid, const char *subgid)
{
	static const struct id_user anna = { .name = "anna", .uid = 1001, .gid = 1002 };
	struct id_range             uids, gids;
	struct err                  e = { 0 };

	if (id_range_of_user(subuid, subgid, &anna, &uids, &gids, &e) < 0) {
		must_say_why(&e);
		must_about(e.text, begins_with(e.text, "/etc/subuid") || begins_with(e.text, "/etc/subgid"));
		return;
	}
	must_hold(&uids);
	must_hold(&gids);
	must(uids.count == gids.count);
	must(anna.uid < uids.base || anna.uid - uids.base >= uids.count);
	must(anna.gid < gids.base || anna.gid - gids.base >= gids.count);
	must_be_nobodys(&uids, subuid, "anna:", "1001:");
	must_be_nobodys(&gids, subgid, "anna:", "1001:");
}

static void check_free(const char *subuid, const char *subgid)
{
	struct id_range r;

	if (id_range_find_free(subuid, subgid, &r) < 0)
		return;
	must_hold(&r);
	must(r.base >= 100000 && r.base + r.count <= ID_RANGE_PRESET_BASE);
	must_be_nobodys(&r, subuid, "\n", "\n");
	must_be_nobodys(&r, subgid, "\n", "\n");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char           *subuid = take_text(&data, &size), *subgid = take_text(&data, &size);
	struct id_range r;
	struct err      e = { 0 };

	if (id_range_choose(subuid, subgid, &r, &e) < 0) {
		must_say_why(&e);
		must_about(e.text, strstr(e.text, "/etc/subuid") || begins_with(e.text, "/etc/subgid"));
	} else {
		must_hold(&r);
		if (r.base == ID_RANGE_PRESET_BASE && !strstr(subuid, "brig:")) {
			must_be_nobodys(&r, subuid, "brig:", "4294967295:");
			must_be_nobodys(&r, subgid, "brig:", "4294967295:");
		}
		must_be_found_again(&r);
	}
	check_user(subuid, subgid);
	check_free(subuid, subgid);
	free(subuid);
	free(subgid);
	return 0;
}
