/* cg_renew.c - makes the leaves of an ended cell as new */
#include "cg.h"

bool cg_is_empty(const struct cg *g)
{
	char first[2];

	for (size_t i = 0; i < g->n; i++)
		if (!cg_read_file(g->leaf[i].fd, "cgroup.procs", first, sizeof first) || first[0])
			return false;
	return true;
}

bool cg_renew(struct cg *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (!cg_leaf_reset(g, &g->leaf[i], false) && !cg_leaf_recreate(g, &g->leaf[i]))
			return false;
	return true;
}
