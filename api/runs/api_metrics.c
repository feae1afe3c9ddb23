#include "api_metrics.h"

#include "exposition.h"

#include <string.h>

static void api_counts_add(struct api_counts *c, const char *first, const char *second)
{
	bool   room = c->n < ARRAY_LEN(c->row) - 1;
	size_t i;

	for (i = 0; i < c->n; i++)
		if (strcmp(c->row[i].label[0], first) == 0 && strcmp(c->row[i].label[1], second) == 0)
			break;
	if (i == c->n) {
		snprintf(c->row[i].label[0], sizeof c->row[i].label[0], "%s", room ? first : "other");
		snprintf(c->row[i].label[1], sizeof c->row[i].label[1], "%s", room ? second : "other");
		c->n += room;
	}
	c->row[i].n++;
}

void api_metrics_count_run(struct api_metrics *m, enum interface by, const char *reason)
{
	api_counts_add(&m->runs, by == INTERFACE_NONE ? "check" : interface_name(by), reason);
}

void api_metrics_count_refused(struct api_metrics *m, const char *code)
{
	api_counts_add(&m->refused, code, "");
}

static void print_counts(const struct api_counts *c, const char *name, const char *first, const char *second, FILE *out)
{
	for (size_t i = 0; i < ARRAY_LEN(c->row) && c->row[i].n; i++)
		exposition_print_count(out, name,
				       (struct exposition_label[]){ { first, c->row[i].label[0] },
								    { second, c->row[i].label[1] },
								    { NULL, NULL } },
				       c->row[i].n);
}

static void print_gauge(const char *name, const char *help, uint64_t value, FILE *out)
{
	exposition_print_head(out, name, "gauge", help);
	exposition_print_count(out, name, NULL, value);
}

void api_metrics_print(const struct api_metrics *m, uint64_t running, uint64_t waiting, uint64_t sessions, FILE *out)
{
	exposition_print_head(out, "brig_api_runs_total", "counter", "Runs that have ended, by interface and by how.");
	print_counts(&m->runs, "brig_api_runs_total", "interface", "exit_reason", out);
	exposition_print_head(out, "brig_api_refused_total", "counter", "Requests that were refused, by reason.");
	print_counts(&m->refused, "brig_api_refused_total", "code", NULL, out);
	print_gauge("brig_api_running", "Runs at this moment.", running, out);
	print_gauge("brig_api_waiting", "Runs that wait for a place.", waiting, out);
	print_gauge("brig_api_sessions", "Sessions that are open.", sessions, out);
}
