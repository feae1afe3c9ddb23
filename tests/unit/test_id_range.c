#include "id_range.h"
#include "tap.h"

#include <string.h>

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
	{ "brig's own range that somebody else has part of is refused", "brig:200000:1000\neve:200999:1\n", "brig:200000:1000\n", 0, 0 },
	{ "a name that begins like ours is somebody else", "brigitte:200000:1000\n", "", ID_RANGE_PRESET_BASE, ID_RANGE_PRESET_COUNT },
};

static const struct {
	const char *name, *subuid, *subgid;
	uint32_t    uids, gids, count; /* count 0: refused */
	const char *says;
} of_user[] = {
	{ "a user's own line is taken", "anna:100000:65536\n", "anna:100000:65536\n", 100000, 100000, 65536, "" },
	{ "uids and gids may begin elsewhere", "anna:100000:65536\n", "anna:300000:65536\n", 100000, 300000, 65536, "" },
	{ "the shorter of the two counts", "anna:100000:65536\n", "anna:100000:1000\n", 100000, 100000, 1000, "" },
	{ "a line by number is as good as one by name", "1000:100000:65536\n", "anna:100000:65536\n", 100000, 100000, 65536, "" },
	{ "the same ids twice are still one's own", "anna:100000:65536\n1000:100000:65536\n", "anna:100000:65536\n", 100000, 100000, 65536, "" },
	{ "no line is told", "bob:100000:65536\n", "anna:100000:65536\n", 0, 0, 0, "/etc/subuid has no line for anna" },
	{ "no line of gids is told", "anna:100000:65536\n", "", 0, 0, 0, "/etc/subgid has no line for anna" },
	{ "a single id is no range", "anna:100000:1\n", "anna:100000:1\n", 0, 0, 0, "no line for anna" },
	{ "an overlap with another user is nobody's", "anna:100000:65536\nbob:165535:65536\n", "anna:100000:65536\n", 0, 0, 0, "to bob as well" },
	{ "an overlap of gids too", "anna:100000:65536\n", "bob:99999:2\nanna:100000:65536\n", 0, 0, 0, "/etc/subgid gives ids of" },
	{ "an overlap with root's cells too", "brig:100000:65536\nanna:100000:65536\n", "anna:100000:65536\n", 0, 0, 0, "to brig as well" },
	{ "an overlap that wraps around is seen", "anna:100000:65536\nbob:5:18446744073709551615\n", "anna:100000:65536\n", 0, 0, 0, "to bob as well" },
	{ "the own id cannot be among them", "anna:1000:65536\n", "anna:100000:65536\n", 0, 0, 0, "include the user's own id 1000" },
	{ "ids of the system are not taken", "anna:10:65536\n", "anna:10:65536\n", 0, 0, 0, "no line for anna" },
};

static const struct {
	const char *name, *subuid, *subgid;
	uint32_t    base; /* 0: there are none */
} free_ranges[] = {
	{ "the first range is where useradd begins", "", "", 100000 },
	{ "the next is behind the last", "anna:100000:65536\n", "anna:100000:65536\n", 165536 },
	{ "a gap is found, whatever the order", "bob:231072:65536\nanna:100000:65536\n", "", 165536 },
	{ "gids are in the way as well", "", "bob:120000:10\n", 120010 },
	{ "a line that takes all leaves none", "bob:0:4294967295\n", "", 0 },
	{ "so does one that wraps around", "bob:100001:18446744073709551615\n", "", 0 },
};

static void test_of_user(void)
{
	const struct id_user anna = { .name = "anna", .uid = 1000, .gid = 1000 };

	for (size_t i = 0; i < ARRAY_LEN(of_user); i++) {
		struct id_range u = { 0 }, g = { 0 };
		struct err      e     = { 0 };
		bool            taken = id_range_of_user(of_user[i].subuid, of_user[i].subgid, &anna, &u, &g, &e) == 0;

		if (!tap_ok(taken == (of_user[i].count != 0) && u.base == of_user[i].uids && g.base == of_user[i].gids &&
			    u.count == of_user[i].count && g.count == u.count && strstr(e.text, of_user[i].says), "%s", of_user[i].name))
			printf("#   %u %u %u %s\n", u.base, g.base, u.count, e.text);
	}
}

static void test_find_free(void)
{
	for (size_t i = 0; i < ARRAY_LEN(free_ranges); i++) {
		struct id_range r = { 0 };
		int             found = id_range_find_free(free_ranges[i].subuid, free_ranges[i].subgid, &r);

		tap_ok(found == (free_ranges[i].base ? 0 : -1) && r.base == free_ranges[i].base, "%s", free_ranges[i].name);
	}
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct id_range r = { 0 };
		struct err      e = { 0 };
		bool            taken = id_range_choose(rows[i].subuid, rows[i].subgid, &r, &e) == 0;

		if (!tap_ok(taken == (rows[i].count != 0) && r.base == rows[i].base && r.count == rows[i].count && taken == !e.text[0], "%s", rows[i].name))
			printf("#   %u %u %s\n", r.base, r.count, e.text);
	}
	test_of_user();
	test_find_free();
	return tap_done();
}
