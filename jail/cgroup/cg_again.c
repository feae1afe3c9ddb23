/* cg_again.c - leaves that a supervisor uses again, without the monitor, for its next cell */
#define _GNU_SOURCE
#include "cg.h"
#include "cg_path.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int64_t read_throttled_count(const struct cg *g)
{
	const struct cg_leaf *leaf = cg_leaf_with_controller(g, CG_CPU);
	char                  text[512];

	return leaf && cg_read_counter_text(g, leaf, "cpu.stat", text, sizeof text)
		? cg_find_key_value(text, "nr_throttled") : -1;
}

void cg_keep_counter_files_open(struct cg *g, struct cg_files *f)
{
	struct cg_usage ignored;

	g->files        = f;
	f->charged   = 0;
	f->throttled = read_throttled_count(g);
	cg_read_usage(g, &ignored); /* opens all files now: each cell has the same number of descriptors */
	(void)cg_read_pids_current(g);
	for (size_t i = 0; i < g->n; i++)
		cg_open_counter_files(g, &g->leaf[i]);
}

bool cg_reset_counters(struct cg *g)
{
	/* A throttled group gets no CPU until the next period: the next cell would wait, too. */
	bool is = read_throttled_count(g) == g->files->throttled;

	for (size_t i = 0; i < g->n && is; i++)
		is = cg_leaf_reset_counters(g, &g->leaf[i], true);
	return is;
}

bool cg_reset_memory_peak(struct cg *g)
{
	const struct cg_leaf *leaf = cg_leaf_with_controller(g, CG_MEMORY);
	int                   fd   = leaf ? cg_get_kept_file(g->files, leaf, "memory.max_usage_in_bytes") : -ENOENT;
	char                  text[32] = "";
	int64_t               charged;

	if (!leaf)
		return true;
	if (fd < 0 || write(fd, "0", 1) != 1 || pread(fd, text, sizeof text - 1, 0) <= 0)
		return false;
	charged = strtoll(text, NULL, 10);
	if (!g->files->charged)
		g->files->charged = charged;
	return charged <= g->files->charged + CG_CHARGED_MAX;
}
