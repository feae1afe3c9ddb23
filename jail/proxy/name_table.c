#include "name_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { PLACES = 2 * NET_NAMES_MAX }; /* a power of two */

/* Jenkins' one-at-a-time, from a secret beginning: whichever bytes follow, what they make of it is not known. */
static uint32_t hash_name(uint32_t seed, const char *name)
{
	uint32_t h = seed;

	for (; *name; name++) {
		h += (unsigned char)*name;
		h += h << 10;
		h ^= h >> 6;
	}
	h += h << 3;
	h ^= h >> 11;
	h += h << 15;
	return h % PLACES;
}

static bool allocate_table(struct name_table *t)
{
	if (!t->name)
		t->name = calloc(NET_NAMES_MAX, sizeof *t->name);
	if (!t->places) {
		t->places = calloc(PLACES, sizeof *t->places);
		(void)!getrandom(&t->seed, sizeof t->seed, 0);
	}
	return t->name && t->places;
}

uint32_t name_table_address_of_name(struct name_table *t, const char *name)
{
	uint32_t at;

	if (!allocate_table(t))
		return 0;
	for (at = hash_name(t->seed, name); t->places[at]; at = (at + 1) % PLACES)
		if (strcmp(t->name[t->places[at] - 1], name) == 0)
			return NET_NAMES + t->places[at] - 1;
	if (t->n == NET_NAMES_MAX || !(t->name[t->n] = strdup(name)))
		return 0;
	t->places[at] = (uint16_t)++t->n;
	return NET_NAMES + t->n - 1;
}

const char *name_table_name_of_address(const struct name_table *t, uint32_t address)
{
	return address >= NET_NAMES && address - NET_NAMES < t->n ? t->name[address - NET_NAMES] : NULL;
}

void name_table_free(struct name_table *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		free(t->name[i]);
	free(t->name);
	free(t->places);
	*t = (struct name_table){ 0 };
}
