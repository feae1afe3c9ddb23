/* group_again.c - leaves that a supervisor uses again, without the keeper, for its next cell */
#define _GNU_SOURCE
#include "group.h"
#include "group_path.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int64_t count_throttled(const struct group *g)
{
	const struct group_leaf *leaf = group_leaf_with(g, GROUP_CPU);
	char                     text[512];

	return leaf && group_read_count(g, leaf, "cpu.stat", text, sizeof text) ? group_key_value(text, "nr_throttled") : -1;
}

void group_keep_files(struct group *g, struct group_files *none)
{
	struct group_usage ignored;

	g->files        = none;
	none->throttled = count_throttled(g);
	group_read(g, &ignored); /* opens all files now, so that each cell has the same number of descriptors, used or not */
	(void)group_pids_now(g);
	for (size_t i = 0; i < g->n; i++)
		group_open_traces(g, &g->leaf[i]);
}

bool group_reset(struct group *g)
{
	bool is = count_throttled(g) == g->files->throttled; /* a throttled group gets no CPU until the next period: the next cell would wait, too */

	for (size_t i = 0; i < g->n && is; i++)
		is = group_leaf_reset(g, &g->leaf[i], true);
	return is;
}

bool group_begin_peak(struct group *g)
{
	const struct group_leaf *leaf = group_leaf_with(g, GROUP_MEMORY);
	int                      fd   = leaf ? group_kept_file(g->files, leaf, "memory.max_usage_in_bytes") : -ENOENT;
	char                     text[32] = "";
	int64_t                  charged;

	if (!leaf)
		return true;
	if (fd < 0 || write(fd, "0", 1) != 1 || pread(fd, text, sizeof text - 1, 0) <= 0)
		return false;
	charged = strtoll(text, NULL, 10);
	if (!g->files->charged)
		g->files->charged = charged;
	return charged <= g->files->charged + GROUP_CHARGED_MAX;
}
