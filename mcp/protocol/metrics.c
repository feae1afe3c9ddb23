#include "metrics.h"

#include "exposition.h"

#include <stdlib.h>
#include <string.h>

#define LABEL_MAX 64

/* The last element of each array is for "other". */
struct ended {
	char     reason[LABEL_MAX], profile[LABEL_MAX];
	uint64_t n;
};

struct refused {
	char     code[LABEL_MAX];
	uint64_t n;
};

struct metrics {
	struct ended   ended[256];
	struct refused refused[64];
	size_t         n_ended, n_refused;
	uint64_t       running, cells_ready;
	uint64_t       sessions, sessions_opened;
	bool           knows_cells;
};

struct metrics *metrics_create(void)
{
	return calloc(1, sizeof(struct metrics));
}

void metrics_destroy(struct metrics *m)
{
	free(m);
}

static void copy_label(char to[LABEL_MAX], const char *from)
{
	(void)snprintf(to, LABEL_MAX, "%s", from && *from ? from : "none");
}

/* The row of these labels, made if necessary; the last one if all rows are in use. */
static struct ended *find_or_add_ended_row(struct metrics *m, const char *reason, const char *profile)
{
	bool          has_room = m->n_ended < ARRAY_LEN(m->ended) - 1;
	struct ended *row;

	for (row = m->ended; row < m->ended + m->n_ended; row++)
		if (!strcmp(row->reason, reason) && !strcmp(row->profile, profile))
			return row;
	m->n_ended += has_room;
	copy_label(row->reason, has_room ? reason : "other");
	copy_label(row->profile, has_room ? profile : "other");
	return row;
}

void metrics_run_started(struct metrics *m)
{
	if (m)
		m->running++;
}

void metrics_run_ended(struct metrics *m, const char *reason, const char *profile)
{
	char labels[2][LABEL_MAX];

	if (!m)
		return;
	copy_label(labels[0], reason);
	copy_label(labels[1], profile);
	find_or_add_ended_row(m, labels[0], labels[1])->n++;
	m->running -= m->running > 0;
}

void metrics_count_refused(struct metrics *m, const char *code)
{
	char   label[LABEL_MAX];
	size_t i;

	if (!m)
		return;
	copy_label(label, code);
	for (i = 0; i < m->n_refused && strcmp(m->refused[i].code, label); i++)
		;
	if (i == m->n_refused) {
		bool room = m->n_refused < ARRAY_LEN(m->refused) - 1;

		copy_label(m->refused[i].code, room ? label : "other");
		m->n_refused += room;
	}
	m->refused[i].n++;
}

void metrics_session_opened(struct metrics *m)
{
	if (!m)
		return;
	m->sessions++;
	m->sessions_opened++;
}

void metrics_session_ended(struct metrics *m)
{
	if (m)
		m->sessions -= m->sessions > 0;
}

void metrics_set_ready_cells(struct metrics *m, uint64_t n)
{
	if (!m)
		return;
	m->cells_ready = n;
	m->knows_cells = true;
}

uint64_t metrics_count_running(const struct metrics *m)
{
	return m ? m->running : 0;
}

/* If all elements but one are in use, the one after them is "other". It has a count if something did not fit. */
void metrics_print(const struct metrics *m, FILE *out)
{
	if (!m)
		return;
	exposition_print_head(out, "brig_mcp_runs_total", "counter",
			      "Runs that have ended, by how and in which profile.");
	for (const struct ended *row = m->ended; row < m->ended + ARRAY_LEN(m->ended) && row->n; row++)
		exposition_print_count(out, "brig_mcp_runs_total",
				 (struct exposition_label[]){
					 { "exit_reason", row->reason }, { "profile", row->profile }, { NULL, NULL } },
				 row->n);
	exposition_print_head(out, "brig_mcp_refused_total", "counter", "Requests that were refused, by reason.");
	for (const struct refused *row = m->refused; row < m->refused + ARRAY_LEN(m->refused) && row->n; row++)
		exposition_print_count(out, "brig_mcp_refused_total",
				 (struct exposition_label[]){ { "code", row->code }, { NULL, NULL } }, row->n);
	exposition_print_head(out, "brig_mcp_running", "gauge", "Runs at this moment.");
	exposition_print_count(out, "brig_mcp_running", NULL, m->running);
	exposition_print_head(out, "brig_mcp_sessions", "gauge", "Sessions that are open.");
	exposition_print_count(out, "brig_mcp_sessions", NULL, m->sessions);
	exposition_print_head(out, "brig_mcp_sessions_total", "counter", "Sessions that were opened.");
	exposition_print_count(out, "brig_mcp_sessions_total", NULL, m->sessions_opened);
	if (!m->knows_cells)
		return;
	exposition_print_head(out, "brig_mcp_cells_ready", "gauge",
			      "Cells of brigd that were ready at the last query.");
	exposition_print_count(out, "brig_mcp_cells_ready", NULL, m->cells_ready);
}
