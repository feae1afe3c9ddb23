/* group_renew.c - makes the leaves of an ended cell as new */
#include "group.h"

bool group_is_empty(const struct group *g)
{
	char first[2];

	for (size_t i = 0; i < g->n; i++)
		if (!group_read_file(g->leaf[i].fd, "cgroup.procs", first, sizeof first) || first[0])
			return false;
	return true;
}

bool group_renew(struct group *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (!group_leaf_reset(g, &g->leaf[i], false) && !group_leaf_recreate(g, &g->leaf[i]))
			return false;
	return true;
}
