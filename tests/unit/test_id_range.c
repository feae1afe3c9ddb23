#include "id_range.h"
#include "tap.h"

#define LONG_NAME "a-name-of-sixty-four-bytes-that-somebody-got-from-a-directory---"

static const struct {
	const char *name, *subuid, *subgid;
	uint32_t    base, count; /* count 0: refused */
} rows[] = {
	{ "without entries the high range is taken", "", "", ID_RANGE_PRESET_BASE, ID_RANGE_PRESET_COUNT },
	{ "other people's low ranges do not matter", "anna:100000:65536\n", "anna:100000:65536\n", ID_RANGE_PRESET_BASE, ID_RANGE_PRESET_COUNT },
	{ "brig's own range is taken", "brig:200000:1000\n", "brig:200000:1000\n", 200000, 1000 },
	{ "brig's own range is found behind others", "anna:1:2\nbrig:200000:1000\n", "brig:200000:1000", 200000, 1000 },
	{ "a range of uids without one of gids is refused", "brig:200000:1000\n", "", 0, 0 },
	{ "gids that differ from the uids are refused", "brig:200000:1000\n", "brig:300000:1000\n", 0, 0 },
	{ "somebody else on the high range is refused", "anna:1879048192:10\n", "", 0, 0 },
	{ "an overlap by one id is refused", "anna:1879048191:2\n", "", 0, 0 },
	{ "an overlap of gids is refused", "", "anna:1879113727:1\n", 0, 0 },
	{ "a count that would wrap around overlaps", "anna:1000:18446744073709551615\n", "", 0, 0 },
	{ "a range without an id is no overlap", "anna:1879048192:0\n", "", ID_RANGE_PRESET_BASE, ID_RANGE_PRESET_COUNT },
	{ "a long name does not hide its range", LONG_NAME LONG_NAME LONG_NAME LONG_NAME ":1879048192:10\n", "", 0, 0 },
	{ "the id just behind is no overlap", "anna:1879113728:1\n", "", ID_RANGE_PRESET_BASE, ID_RANGE_PRESET_COUNT },
	{ "a range that would hold root is not taken", "brig:0:1000\n", "brig:0:1000\n", ID_RANGE_PRESET_BASE, ID_RANGE_PRESET_COUNT },
	{ "a range that wraps around is not taken", "brig:4294967290:100\n", "brig:4294967290:100\n", ID_RANGE_PRESET_BASE, ID_RANGE_PRESET_COUNT },
	{ "lines of another shape hand out nothing", "brig\n::\nbrig:x:y\nbrig:1:\n", "\n\n", ID_RANGE_PRESET_BASE, ID_RANGE_PRESET_COUNT },
	{ "a name that begins like ours is somebody else", "brigitte:200000:1000\n", "", ID_RANGE_PRESET_BASE, ID_RANGE_PRESET_COUNT },
};

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct id_range r = { 0 };
		struct err      e = { 0 };
		bool            taken = id_range_choose(rows[i].subuid, rows[i].subgid, &r, &e) == 0;

		if (!tap_ok(taken == (rows[i].count != 0) && r.base == rows[i].base && r.count == rows[i].count && taken == !e.text[0], "%s", rows[i].name))
			printf("#   %u %u %s\n", r.base, r.count, e.text);
	}
	return tap_done();
}
