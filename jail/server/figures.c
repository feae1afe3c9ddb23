#include "figures.h"

#include <stdlib.h>
#include <string.h>

/* The texts are Prometheus' label "le". */
struct bound {
	double      most;
	const char *text;
};
#define BOUND(n) { n, #n }

/* clang-format off */
static const struct bound seconds[] = { /* a warm start is below one millisecond, a ceiling of wall time is minutes */
	BOUND(0.0005), BOUND(0.001), BOUND(0.0025), BOUND(0.005), BOUND(0.01), BOUND(0.025), BOUND(0.05), BOUND(0.1),
	BOUND(0.25), BOUND(0.5), BOUND(1), BOUND(2.5), BOUND(5), BOUND(10), BOUND(30), BOUND(60), BOUND(300),
	{ 0, NULL },
};
static const struct bound bytes[] = { /* 1 MiB, twice as much each time, to 8 GiB */
	BOUND(1048576), BOUND(2097152), BOUND(4194304), BOUND(8388608), BOUND(16777216), BOUND(33554432),
	BOUND(67108864), BOUND(134217728), BOUND(268435456), BOUND(536870912), BOUND(1073741824), BOUND(2147483648),
	BOUND(4294967296), BOUND(8589934592), { 0, NULL },
};
static const struct figure_row {
	const char         *key; /* of the reply */
	const struct bound *bounds;
} figure_rows[FIGURE_COUNT] = {
	[FIGURE_WAIT]   = { "wait_seconds",      seconds },
	[FIGURE_SETUP]  = { "setup_seconds",     seconds },
	[FIGURE_WALL]   = { "wall_seconds",      seconds },
	[FIGURE_CPU]    = { "cpu_seconds",       seconds },
	[FIGURE_MEMORY] = { "memory_peak_bytes", bytes   },
};
/* clang-format on */
_Static_assert(ARRAY_LEN(seconds) <= HISTOGRAM_BOUNDS_MAX + 1 && ARRAY_LEN(bytes) <= HISTOGRAM_BOUNDS_MAX + 1,
	       "each bound has its count");

void figures_init(struct figures *f)
{
	SLIST_INIT(&f->rows);
}

void figures_done(struct figures *f)
{
	struct profile_figures *row;

	while ((row = SLIST_FIRST(&f->rows))) {
		SLIST_REMOVE_HEAD(&f->rows, link);
		free(row);
	}
}

/* NULL: no memory. */
static struct profile_figures *find_or_add_row(struct figures *f, const char *profile)
{
	struct profile_figures *row;

	SLIST_FOREACH(row, &f->rows, link)
		if (strcmp(row->profile, profile) == 0)
			return row;
	row = calloc(1, sizeof *row);
	if (!row)
		return NULL;
	snprintf(row->profile, sizeof row->profile, "%s", profile);
	SLIST_INSERT_HEAD(&f->rows, row, link);
	return row;
}

/* What is negative was not measured. */
static void add_to_histogram(struct profile_figures *row, enum figure figure, double value)
{
	const struct bound *bounds = figure_rows[figure].bounds;
	size_t              i      = 0;

	if (value < 0)
		return;
	while (bounds[i].text && value > bounds[i].most)
		i++;
	row->of[figure].in[i]++;
	row->of[figure].sum += value;
}

void figures_add_wait(struct figures *f, const char *profile, double ms)
{
	struct profile_figures *row = find_or_add_row(f, profile);

	if (row)
		add_to_histogram(row, FIGURE_WAIT, ms / 1000);
}

void figures_add_ended_run(struct figures *f, const char *profile, const struct run_result *result)
{
	struct profile_figures *row = find_or_add_row(f, profile);

	if (!row)
		return;
	row->ended[result->warm][result->reason]++;
	add_to_histogram(row, FIGURE_SETUP, result->figures.setup_ms / 1000);
	add_to_histogram(row, FIGURE_WALL, result->figures.wall_ms / 1000);
	add_to_histogram(row, FIGURE_CPU, result->figures.cpu_ms / 1000);
	add_to_histogram(row, FIGURE_MEMORY, (double)result->figures.memory_peak_bytes);
}

/* --- as JSON --- */

/* All reasons, also those without a run: Prometheus sees the first increase only if there was a 0. */
static json_t *exit_reasons_to_json(const uint64_t ended[EXIT_REASONS])
{
	json_t *reasons = json_object();

	for (int i = 0; i < EXIT_REASONS; i++)
		json_object_set_new(reasons, exit_reason_name((enum exit_reason)i), json_integer((json_int_t)ended[i]));
	return reasons;
}

/* Buckets are cumulative: each one includes those below it. */
static json_t *histogram_to_json(const struct histogram *h, const struct bound *bounds)
{
	json_t    *buckets = json_object();
	json_int_t n       = 0;
	size_t     i;

	for (i = 0; bounds[i].text; i++)
		json_object_set_new(buckets, bounds[i].text, json_integer(n += (json_int_t)h->in[i]));
	json_object_set_new(buckets, "+Inf", json_integer(n + (json_int_t)h->in[i]));
	return json_pack("{sf so}", "sum", h->sum, "buckets", buckets);
}

void figures_put_profile_json(struct figures *f, const char *profile, json_t *reply)
{
	static const struct profile_figures none = { .profile = "" };
	const struct profile_figures       *row  = find_or_add_row(f, profile);

	row = row ? row : &none;
	json_object_set_new(reply, "cold", exit_reasons_to_json(row->ended[false]));
	json_object_set_new(reply, "warm", exit_reasons_to_json(row->ended[true]));
	for (int i = 0; i < FIGURE_COUNT; i++)
		json_object_set_new(reply, figure_rows[i].key, histogram_to_json(&row->of[i], figure_rows[i].bounds));
}
