#include "name_table.h"
#include "tap.h"

#include <string.h>

static uint32_t add(struct name_table *t, unsigned n)
{
	char name[64];

	snprintf(name, sizeof name, "n%u.example", n);
	return name_table_address_of_name(t, name);
}

static const char *of(const struct name_table *t, uint32_t address)
{
	const char *name = name_table_name_of_address(t, address);

	return name ? name : "";
}

static void one_after_the_other(void)
{
	struct name_table t = { 0 };

	tap_ok(!name_table_name_of_address(&t, NET_NAMES), "an empty table has no address");
	tap_ok(name_table_address_of_name(&t, "a.example") == NET_NAMES &&
	       name_table_address_of_name(&t, "b.example") == NET_NAMES + 1,
	       "names have addresses in the order in which they were asked for");
	tap_ok(name_table_address_of_name(&t, "a.example") == NET_NAMES && t.n == 2,
	       "a name that is asked for again has the same one");
	tap_is(of(&t, NET_NAMES + 1), "b.example", "an address is its name again");
	tap_ok(!name_table_name_of_address(&t, NET_NAMES + 2) && !name_table_name_of_address(&t, NET_NAMES - 1) &&
	       !name_table_name_of_address(&t, NET_GATEWAY) &&
		       !name_table_name_of_address(&t, 0) && !name_table_name_of_address(&t, UINT32_MAX),
	       "no other address is a name, the gateway's least of all");
	name_table_free(&t);
	tap_ok(t.n == 0 && !name_table_name_of_address(&t, NET_NAMES), "nothing is left of a table that was freed");
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
	tap_ok(!name_table_name_of_address(&t, NET_NAMES + NET_NAMES_MAX), "there is none behind it");
	tap_ok(NET_NAMES + NET_NAMES_MAX - 1 <= (uint32_t)NET_ROUTE + (1u << (32 - NET_ROUTE_BITS)) - 1,
	       "all of them are in the cell's route");
	name_table_free(&t);
}

/* One step of FNV-1a, which has no secret; its low bits depend on low bits alone. */
static uint32_t fnv(uint32_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 16777619u % (2 * NET_NAMES_MAX);
	return h;
}

/* Two blocks of three letters that lead from this state to the same one, which is returned. */
static uint32_t find_pair(uint32_t state, char pair[2][4])
{
	static uint32_t seen[2 * NET_NAMES_MAX];

	memset(seen, 0, sizeof seen);
	for (uint32_t n = 1;; n++) {
		char     block[4] = { (char)('a' + n % 26), (char)('a' + n / 26 % 26), (char)('a' + n / 676 % 26), 0 };
		uint32_t h        = fnv(state, block), other = seen[h];

		seen[h] = n;
		if (!other)
			continue;
		memcpy(pair[0], block, sizeof block);
		memcpy(pair[1], (char[4]){ (char)('a' + other % 26), (char)('a' + other / 26 % 26), (char)('a' + other / 676 % 26), 0 }, 4);
		return h;
	}
}

static unsigned longest_row(const struct name_table *t)
{
	unsigned longest = 0, row = 0;

	for (unsigned i = 0; i < 2 * NET_NAMES_MAX; i++) {
		row     = t->places[i] ? row + 1 : 0;
		longest = row > longest ? row : longest;
	}
	return longest;
}

/* 4,096 names that are one place for FNV-1a: without a secret in the hash, they would be one row of as many places. */
static void names_that_collide(void)
{
	struct name_table t     = { 0 };
	uint32_t          state = 2166136261u % (2 * NET_NAMES_MAX);
	char              pair[12][2][4];
	bool              right = true;

	for (size_t at = 0; at < ARRAY_LEN(pair); at++)
		state = find_pair(state, pair[at]);
	for (unsigned n = 0; n < NET_NAMES_MAX; n++) {
		char name[64] = "";

		for (size_t at = 0; at < ARRAY_LEN(pair); at++)
			strcat(name, pair[at][n >> at & 1]);
		right &= fnv(2166136261u % (2 * NET_NAMES_MAX), name) == state;
		strcat(name, ".wild.example");
		right &= name_table_address_of_name(&t, name) == NET_NAMES + n;
	}
	tap_ok(right && longest_row(&t) < 500, "4,096 names that collide without a secret are spread in the table");
	name_table_free(&t);
}

int main(void)
{
	one_after_the_other();
	all_of_them();
	names_that_collide();
	return tap_done();
}
