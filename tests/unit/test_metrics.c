/* test_metrics.c - what is counted, and that clients cannot make it grow */
#include "metrics.h"
#include "tap.h"

static char *printed(const struct metrics *m)
{
	char  *text = NULL;
	size_t len  = 0;
	FILE  *out  = open_memstream(&text, &len);

	metrics_print(m, out);
	fclose(out);
	return text;
}

static bool has(const struct metrics *m, const char *line)
{
	char *text  = printed(m);
	bool  found = strstr(text, line) != NULL;

	free(text);
	return found;
}

static size_t lines(const struct metrics *m)
{
	char  *text = printed(m);
	size_t n    = 0;

	for (const char *p = text; *p; p++)
		n += *p == '\n';
	free(text);
	return n;
}

static void test_counts(void)
{
	struct metrics *m = metrics_create();

	metrics_run_started(m);
	metrics_run_started(m);
	metrics_run_ended(m, "exited", "basic");
	tap_ok(metrics_count_running(m) == 1, "runs that have not ended are running");
	tap_ok(has(m, "brig_mcp_runs_total{exit_reason=\"exited\",profile=\"basic\"} 1\n"), "a run is counted by how it ended and in which profile");
	metrics_run_ended(m, "exited", "basic");
	metrics_run_ended(m, "exited", "basic");
	tap_ok(metrics_count_running(m) == 0, "more ends than starts leave nothing running");
	metrics_run_ended(m, NULL, NULL);
	tap_ok(has(m, "{exit_reason=\"none\",profile=\"none\"} 1\n"), "what has no name is none");
	metrics_count_refused(m, "busy");
	metrics_count_refused(m, "busy");
	tap_ok(has(m, "brig_mcp_refused_total{code=\"busy\"} 2\n"), "refusals are counted by why");
	tap_ok(!has(m, "cells_ready"), "cells are left out before anybody knows");
	metrics_set_ready_cells(m, 3);
	tap_ok(has(m, "brig_mcp_cells_ready 3\n"), "cells are told when they are known");
	metrics_destroy(m);
}

static void test_bounds(void)
{
	struct metrics *m = metrics_create();
	char            name[200];

	metrics_run_ended(m, "a\"b\\c\nd", "p");
	tap_ok(has(m, "exit_reason=\"a\\\"b\\\\c\\nd\""), "a label cannot end its line");
	for (int i = 0; i < 10000; i++) {
		snprintf(name, sizeof name, "%d-%0150d", i, 0);
		metrics_run_ended(m, "exited", name);
		metrics_count_refused(m, name);
	}
	tap_ok(lines(m) < 400, "labels that clients make up cannot make it grow");
	tap_ok(has(m, "{exit_reason=\"other\",profile=\"other\"} "), "what does not fit is other");
	tap_ok(has(m, "{code=\"other\"} "), "so are refusals");
	metrics_destroy(m);
}

static void test_nobody_counts(void)
{
	metrics_run_started(NULL);
	metrics_run_ended(NULL, "exited", "basic");
	metrics_count_refused(NULL, "busy");
	metrics_set_ready_cells(NULL, 1);
	metrics_print(NULL, stdout);
	metrics_destroy(NULL);
	tap_ok(metrics_count_running(NULL) == 0, "where nobody counts nothing happens");
}

int main(void)
{
	test_counts();
	test_bounds();
	test_nobody_counts();
	return tap_done();
}
