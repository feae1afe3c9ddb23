/*
 * figures.h - what the runs of each profile have cost since the service began: how they ended, and histograms.
 *
 * A row for each profile, by its name, so that it outlives what was read of the profile. Names are those of profiles that
 * are there, never a client's text: the administrator's files bound the rows. A figure that the host could not measure is
 * not observed. A run costs a few additions; out of memory, it is not counted.
 */
#pragma once
#include "record.h"

#include <sys/queue.h>

enum { HISTOGRAM_BOUNDS_MAX = 18 };

struct histogram {
	uint64_t in[HISTOGRAM_BOUNDS_MAX + 1]; /* between two bounds each; the last: above all */
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

/* A run of this profile was started, so long after it was asked for. */
void figures_take_wait(struct figures *f, const char *profile, double ms);
/* It has ended. Once for each record. */
void figures_take_end(struct figures *f, const struct record *record);

/* Adds the keys of the reply to `metrics` (client_answer.c). Those of a profile that nothing ran under are 0. */
void figures_tell(struct figures *f, const char *profile, json_t *reply);
