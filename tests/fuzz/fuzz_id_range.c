/* fuzz_id_range.c - any bytes as /etc/subuid, NUL, /etc/subgid: no id is taken that somebody else was given */
#include "fuzz.h"
#include "id_range.h"

#include <inttypes.h>

static void must_hold(const struct id_range *r)
{
	must(r->base >= 1000 && r->count >= IDS_PER_CELL && id_range_slots(r) > 0);
	must((uint64_t)r->base + r->count <= UINT32_MAX); /* the last id is no id: (uid_t)-1 */
}

/* Once more, slowly: does any line hand out an id of the range? */
static void must_be_nobodys(const struct id_range *r, const char *text)
{
	for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *colon = strchr(line, ':');
		uint64_t    base = 0, count = 0;
		int         end = 0;

		if (!colon || sscanf(colon, ":%19" SCNu64 ":%19" SCNu64 "%n", &base, &count, &end) != 2)
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char           *subuid = take_text(&data, &size), *subgid = take_text(&data, &size);
	struct id_range r;
	struct err      e = { 0 };

	if (id_range_choose(subuid, subgid, &r, &e) < 0) {
		must_say_why(&e);
		must_about(e.text, strstr(e.text, "/etc/subuid"));
	} else {
		must_hold(&r);
		if (r.base == ID_RANGE_PRESET_BASE && !strstr(subuid, "brig:")) {
			must_be_nobodys(&r, subuid);
			must_be_nobodys(&r, subgid);
		}
		must_be_found_again(&r);
	}
	free(subuid);
	free(subgid);
	return 0;
}
