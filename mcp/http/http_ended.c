#include "http_ended.h"

#include <stdio.h>
#include <string.h>

bool ended_sessions_have(const struct ended *all, const char *owner)
{
	for (size_t i = 0; i < ENDED_MAX && i < all->n && *owner; i++)
		if (strcmp(all->owner[i], owner) == 0)
			return true;
	return false;
}

void ended_sessions_add(struct ended *all, const char *owner)
{
	if (!ended_sessions_have(all, owner))
		(void)snprintf(all->owner[all->n++ % ENDED_MAX], sizeof all->owner[0], "%s", owner);
}
