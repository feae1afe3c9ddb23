#include "http_ended.h"

#include <stdio.h>
#include <string.h>

bool ended_has(const struct ended *all, const char *owner)
{
	for (size_t i = 0; i < ENDED_MAX && i < all->n && *owner; i++)
		if (strcmp(all->owner[i], owner) == 0)
			return true;
	return false;
}

void ended_add(struct ended *all, const char *owner)
{
	if (!ended_has(all, owner))
		(void)snprintf(all->owner[all->n++ % ENDED_MAX], sizeof all->owner[0], "%s", owner);
}
