#include "name_table.h"

#include <stdlib.h>
#include <string.h>

enum { PLACES = 2 * NET_NAMES_MAX }; /* a power of two */

/* FNV-1a. Names that a program makes collide cost at most NET_NAMES_MAX comparisons each: a run has its own table. */
static uint32_t hash(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	return h % PLACES;
}

static bool make(struct name_table *t)
{
	if (!t->name)
		t->name = calloc(NET_NAMES_MAX, sizeof *t->name);
	if (!t->places)
		t->places = calloc(PLACES, sizeof *t->places);
	return t->name && t->places;
}

uint32_t name_table_address(struct name_table *t, const char *name)
{
	uint32_t at;

	if (!make(t))
		return 0;
	for (at = hash(name); t->places[at]; at = (at + 1) % PLACES)
		if (strcmp(t->name[t->places[at] - 1], name) == 0)
			return NET_NAMES + t->places[at] - 1;
	if (t->n == NET_NAMES_MAX || !(t->name[t->n] = strdup(name)))
		return 0;
	t->places[at] = (uint16_t)++t->n;
	return NET_NAMES + t->n - 1;
}

const char *name_table_name(const struct name_table *t, uint32_t address)
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
