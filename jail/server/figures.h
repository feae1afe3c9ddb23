/*
 * figures.h - what the runs of each profile have cost since the service began: how they ended, and histograms.
 *
 * One row for each name of a profile, so that figures survive a reload. The names come from profiles that exist, never
 * from a client: so the administrator's files limit the number of rows. A figure that the host could not measure is
 * left out. When memory is short, a run is not counted.
 */
#pragma once
#include "linked_list.h"
#include "run_result.h"

#include <jansson.h>

enum { HISTOGRAM_BOUNDS_MAX = 18 };

struct histogram {
	uint64_t in[HISTOGRAM_BOUNDS_MAX + 1]; /* how many values lie between two bounds; the last: above all bounds */
	double   sum;
};

enum figure { FIGURE_WAIT, FIGURE_SETUP, FIGURE_WALL, FIGURE_CPU, FIGURE_MEMORY, FIGURE_COUNT };

struct profile_figures {
	SLIST_ENTRY(profile_figures) link;
	char             profile[64];
	uint64_t         ended[2][EXIT_REASONS]; /* cold, warm */
	struct histogram of[FIGURE_COUNT];
};

struct figures {
	SLIST_HEAD(, profile_figures) rows;
};

void figures_init(struct figures *f);
void figures_done(struct figures *f);

/* A run of this profile was started, ms after it was asked for. */
void figures_add_wait(struct figures *f, const char *profile, double ms);
/* A run has ended. Once for each run. */
void figures_add_ended_run(struct figures *f, const char *profile, const struct run_result *result);

/* Adds the keys of the reply to `metrics` (protocol_answer.c). They are 0 for a profile that had no run. */
void figures_put_profile_json(struct figures *f, const char *profile, json_t *reply);
