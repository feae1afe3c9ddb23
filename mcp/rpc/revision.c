#include "revision.h"

#include <string.h>

static const char *const names[] = {
	[REVISION_2024_11_05] = "2024-11-05", [REVISION_2025_03_26] = "2025-03-26", [REVISION_2025_06_18] = "2025-06-18",
	[REVISION_2025_11_25] = "2025-11-25", [REVISION_2026_07_28] = "2026-07-28",
};
_Static_assert(ARRAY_LEN(names) == REVISION_COUNT, "each revision has a name");

const char *revision_name(enum revision r)
{
	return names[r];
}

bool revision_find(const char *name, enum revision *ret)
{
	for (unsigned i = 0; name && i < REVISION_COUNT; i++)
		if (strcmp(names[i], name) == 0) {
			*ret = (enum revision)i;
			return true;
		}
	return false;
}
