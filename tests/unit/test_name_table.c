#include "name_table.h"
#include "tap.h"

static uint32_t add(struct name_table *t, unsigned n)
{
	char name[64];

	snprintf(name, sizeof name, "n%u.example", n);
	return name_table_address(t, name);
}

static const char *of(const struct name_table *t, uint32_t address)
{
	const char *name = name_table_name(t, address);

	return name ? name : "";
}

static void one_after_the_other(void)
{
	struct name_table t = { 0 };

	tap_ok(!name_table_name(&t, NET_NAMES), "an empty table has no address");
	tap_ok(name_table_address(&t, "a.example") == NET_NAMES && name_table_address(&t, "b.example") == NET_NAMES + 1,
	       "names have addresses in the order in which they were asked for");
	tap_ok(name_table_address(&t, "a.example") == NET_NAMES && t.n == 2, "a name that is asked for again has the same one");
	tap_is(of(&t, NET_NAMES + 1), "b.example", "an address is its name again");
	tap_ok(!name_table_name(&t, NET_NAMES + 2) && !name_table_name(&t, NET_NAMES - 1) && !name_table_name(&t, NET_GATEWAY) &&
		       !name_table_name(&t, 0) && !name_table_name(&t, UINT32_MAX),
	       "no other address is a name, the gateway's least of all");
	name_table_free(&t);
	tap_ok(t.n == 0 && !name_table_name(&t, NET_NAMES), "nothing is left of a table that was freed");
	name_table_free(&t);
}

static void all_of_them(void)
{
	struct name_table t     = { 0 };
	bool              right = true;

	for (unsigned n = 0; n < NET_NAMES_MAX; n++)
		right &= add(&t, n) == NET_NAMES + n;
	tap_ok(right && add(&t, NET_NAMES_MAX) == 0, "it has so many names and no more");
	for (unsigned n = 0; n < NET_NAMES_MAX; n++)
		right &= add(&t, n) == NET_NAMES + n;
	tap_ok(right && t.n == NET_NAMES_MAX, "those that are there are found in a full one");
	tap_is(of(&t, NET_NAMES + NET_NAMES_MAX - 1), "n4095.example", "so is the last one");
	tap_ok(!name_table_name(&t, NET_NAMES + NET_NAMES_MAX), "there is none behind it");
	tap_ok(NET_NAMES + NET_NAMES_MAX - 1 <= (uint32_t)NET_ROUTE + (1u << (32 - NET_ROUTE_BITS)) - 1,
	       "all of them are in the cell's route");
	name_table_free(&t);
}

int main(void)
{
	one_after_the_other();
	all_of_them();
	return tap_done();
}
