#include "service_metrics.h"

#include "denial.h"
#include "exposition.h"

#include <string.h>

struct metric;

/* Prints all samples of one metric. */
typedef void samples_fn(const struct metric *m, const json_t *stats, const json_t *runs, FILE *out);
static samples_fn print_build_metric, print_service_metric, print_refusals_by_code, print_calls_by_outcome, print_metric_by_process, print_metric_by_profile, print_zygote_states, print_run_ends, print_profile_histograms;

/* clang-format off */
static const struct metric {
	const char *name, *type;
	samples_fn *samples;
	const char *key;    /* the path in the reply, like "runs.started" */
	double      scale;  /* from the reply's unit to that of the metric; 0: a whole number, printed as it is */
	const char *labels; /* for the manual */
	const char *help;
} metrics[] = {
	{ "brig_runs_total",                 "counter",   print_run_ends,       NULL, 0,       "profile, reason, warm",  "Runs that have ended, by profile, exit reason, and whether they were forked from a zygote." },
	{ "brig_run_wait_seconds",           "histogram", print_profile_histograms, "wait_seconds",      1, "profile", "From the request to the start, of runs that were started." },
	{ "brig_run_setup_seconds",          "histogram", print_profile_histograms, "setup_seconds",     1, "profile", "What it took to build the jail, of runs that have ended." },
	{ "brig_run_wall_seconds",           "histogram", print_profile_histograms, "wall_seconds",      1, "profile", "How long the program ran." },
	{ "brig_run_cpu_seconds",            "histogram", print_profile_histograms, "cpu_seconds",       1, "profile", "CPU time of the program, where the host counts it." },
	{ "brig_run_memory_peak_bytes",      "histogram", print_profile_histograms, "memory_peak_bytes", 1, "profile", "The most memory that the program held, where the host counts it." },
	{ "brig_runs_started_total",         "counter",   print_service_metric,    "runs.started", 0, NULL,      "Requests that became a run." },
	{ "brig_refused_total",              "counter",   print_refusals_by_code,      "refused",      0, "code",    "Requests and clients that were refused, by the code of the error: busy, denied, bad_field and so on." },
	{ "brig_tool_calls_total",           "counter",   print_calls_by_outcome,      "tool_calls",   0, "outcome", "Calls of tools by programs, as clients have reported them: ok, denied, or failed, which is any other end." },
	{ "brig_network_connections_total",  "counter",   print_service_metric,    "network.connections", 0, NULL, "Connections of programs to other hosts, with those that were refused or failed, of runs that have ended." },
	{ "brig_network_refused_total",      "counter",   print_service_metric,    "network.refused",     0, NULL, "Connections of programs that no rule allowed, or whose protocol or host was not the declared one." },
	{ "brig_network_failed_total",       "counter",   print_service_metric,    "network.failed",      0, NULL, "Connections of programs that were allowed and failed." },
	{ "brig_network_received_bytes_total", "counter", print_service_metric,    "network.bytes_in",    0, NULL, "Bytes that programs received from other hosts." },
	{ "brig_network_sent_bytes_total",   "counter",   print_service_metric,    "network.bytes_out",   0, NULL, "Bytes that programs sent to other hosts." },
	{ "brig_runs_running",               "gauge",     print_metric_by_profile,   "running",      0, "profile", "Runs that have not ended." },
	{ "brig_runs_waiting",               "gauge",     print_service_metric,    "waiting",      0, NULL,      "Runs that wait for a place." },
	{ "brig_ready_cells",                "gauge",     print_metric_by_profile,   "ready",        0, "profile", "Cells that wait for a program." },
	{ "brig_building_cells",             "gauge",     print_metric_by_profile,   "building",     0, "profile", "Cells that are being built." },
	{ "brig_zygotes",                    "gauge",     print_zygote_states,    "zygote.state", 0, "profile", "1 while a zygote serves, else 0; profiles whose runs are cold have none." },
	{ "brig_zygotes_started_total",      "counter",   print_metric_by_profile,   "zygote.generation",   0, "profile", "Zygotes that were started, the first among them." },
	{ "brig_zygote_memory_bytes",        "gauge",     print_metric_by_profile,   "zygote.memory_bytes", 0, "profile", "Memory of the zygote as proportional set size (PSS): each shared page is divided by the number of processes that map it." },
	{ "brig_connections",                "gauge",     print_service_metric,    "connections",  0, NULL,      "Open connections of clients." },
	{ "brig_connections_total",          "counter",   print_service_metric,    "connected",    0, NULL,      "Connections of clients that were let in." },
	{ "brig_audit_entries_total",        "counter",   print_service_metric,    "audit.entries",      0, NULL, "Entries passed to the audit log: runs that have ended, and refusals." },
	{ "brig_audit_suppressed_total",     "counter",   print_service_metric,    "audit.suppressed",   0, NULL, "Refusals and calls of tools that the audit did not write, because one user had too many." },
	{ "brig_audit_journal_lost_total",   "counter",   print_service_metric,    "audit.journal_lost", 0, NULL, "Lines that the journal did not take." },
	{ "brig_audit_file_lost_total",      "counter",   print_service_metric,    "audit.file_lost",    0, NULL, "Lines that are not in the audit's file." },
	{ "brig_process_cpu_seconds_total",  "counter",   print_metric_by_process,  "cpu_ms",       0.001, "process", "CPU time of server and monitor." },
	{ "brig_process_resident_memory_bytes", "gauge",  print_metric_by_process,  "memory_bytes", 0, "process", "Memory of server and monitor." },
	{ "brig_start_time_seconds",         "gauge",     print_service_metric,    "started_at",   1, NULL,      "When the service started, in seconds since 1970." },
	{ "brig_build_info",                 "gauge",     print_build_metric,      "brig",         0, "version", "1, with the version of the service." },
};
/* clang-format on */

/* --- single figures --- */

/* The value at a path like "audit.entries"; NULL when a key on it is missing, or its parent is null. */
static const json_t *find_value_at_path(const json_t *object, const char *path)
{
	size_t n = strcspn(path, ".");

	object = json_object_getn(object, path, n);
	return path[n] ? find_value_at_path(object, path + n + 1) : object;
}

static void print_sample(const struct metric *m, const struct exposition_label *labels, const json_t *value, FILE *out)
{
	if (m->scale == 0 && json_is_integer(value))
		exposition_print_count(out, m->name, labels, (uint64_t)json_integer_value(value));
	else if (m->scale != 0 && json_is_number(value))
		exposition_print_number(out, m->name, labels, json_number_value(value) * m->scale);
}

/* is: the label's value; label NULL: no label. */
static void print_labelled_sample(const struct metric *m, const char *label, const char *is, const json_t *value, FILE *out)
{
	const struct exposition_label labels[] = { { label, is }, { NULL, NULL } };

	print_sample(m, labels, value, out);
}

static const char *label_of_member(const json_t *row, const char *key)
{
	const char *name = json_string_value(json_object_get(row, key));

	return name ? name : "";
}

static void print_build_metric(const struct metric *m, const json_t *stats, const json_t *runs, FILE *out)
{
	const struct exposition_label labels[] = { { "version", label_of_member(stats, m->key) }, { NULL, NULL } };

	(void)runs;
	exposition_print_count(out, m->name, labels, 1);
}

static void print_service_metric(const struct metric *m, const json_t *stats, const json_t *runs, FILE *out)
{
	(void)runs;
	print_sample(m, NULL, find_value_at_path(stats, m->key), out);
}

/* All codes, also those with a count of 0: Prometheus sees the first increase only if there was a sample before. */
static void print_refusals_by_code(const struct metric *m, const json_t *stats, const json_t *runs, FILE *out)
{
	const json_t *refused = find_value_at_path(stats, m->key);

	(void)runs;
	for (int i = 0; i < DENIAL_COUNT; i++) {
		const char                   *code     = denial_code_name((enum denial_code)i);
		const struct exposition_label labels[] = { { "code", code }, { NULL, NULL } };

		exposition_print_count(out, m->name, labels, (uint64_t)json_integer_value(json_object_get(refused, code)));
	}
}

static void print_calls_by_outcome(const struct metric *m, const json_t *stats, const json_t *runs, FILE *out)
{
	const char *outcome;
	json_t     *times;

	(void)runs;
	json_object_foreach((json_t *)find_value_at_path(stats, m->key), outcome, times)
		print_labelled_sample(m, "outcome", outcome, times, out);
}

static void print_metric_by_process(const struct metric *m, const json_t *stats, const json_t *runs, FILE *out)
{
	static const char *const processes[] = { "door", "keeper" };

	(void)runs;
	for (size_t i = 0; i < ARRAY_LEN(processes); i++)
		print_labelled_sample(m, "process", processes[i], find_value_at_path(json_object_get(stats, processes[i]), m->key), out);
}

static void print_metric_by_profile(const struct metric *m, const json_t *stats, const json_t *runs, FILE *out)
{
	const json_t *profiles = json_object_get(stats, "profiles");

	(void)runs;
	for (size_t i = 0; i < json_array_size(profiles); i++) {
		const json_t *row = json_array_get(profiles, i);

		print_labelled_sample(m, "profile", label_of_member(row, "name"), find_value_at_path(row, m->key), out);
	}
}

/* A zygote in the state replaced serves until its successor is ready. */
static void print_zygote_states(const struct metric *m, const json_t *stats, const json_t *runs, FILE *out)
{
	const json_t *profiles = json_object_get(stats, "profiles");

	(void)runs;
	for (size_t i = 0; i < json_array_size(profiles); i++) {
		const json_t                 *row      = json_array_get(profiles, i);
		const char                   *state    = json_string_value(find_value_at_path(row, m->key));
		const struct exposition_label labels[] = { { "profile", label_of_member(row, "name") }, { NULL, NULL } };

		if (state)
			exposition_print_count(out, m->name, labels, strcmp(state, "serving") == 0 || strcmp(state, "replaced") == 0);
	}
}

/* --- runs --- */

static void print_run_ends_of_profile(const struct metric *m, const json_t *row, bool warm, FILE *out)
{
	struct exposition_label labels[] = { { "profile", label_of_member(row, "profile") }, { "reason", NULL }, { "warm", warm ? "true" : "false" }, { NULL, NULL } };
	json_t                 *times;

	json_object_foreach(json_object_get(row, warm ? "warm" : "cold"), labels[1].value, times)
		print_sample(m, labels, times, out);
}

static void print_run_ends(const struct metric *m, const json_t *stats, const json_t *runs, FILE *out)
{
	(void)stats;
	for (size_t i = 0; i < json_array_size(runs); i++) {
		print_run_ends_of_profile(m, json_array_get(runs, i), false, out);
		print_run_ends_of_profile(m, json_array_get(runs, i), true, out);
	}
}

static void print_histogram(const struct metric *m, const char *profile, const json_t *histogram, FILE *out)
{
	struct exposition_label labels[] = { { "profile", profile }, { "le", NULL }, { NULL, NULL } };
	char                    name[64];
	json_t                 *times;
	uint64_t                all = 0;

	snprintf(name, sizeof name, "%s_bucket", m->name);
	json_object_foreach(json_object_get(histogram, "buckets"), labels[1].value, times)
		exposition_print_count(out, name, labels, all = (uint64_t)json_integer_value(times));
	labels[1] = (struct exposition_label){ NULL, NULL };
	snprintf(name, sizeof name, "%s_sum", m->name);
	exposition_print_number(out, name, labels, json_number_value(json_object_get(histogram, "sum")));
	snprintf(name, sizeof name, "%s_count", m->name);
	exposition_print_count(out, name, labels, all);
}

static void print_profile_histograms(const struct metric *m, const json_t *stats, const json_t *runs, FILE *out)
{
	(void)stats;
	for (size_t i = 0; i < json_array_size(runs); i++) {
		const json_t *row = json_array_get(runs, i);

		print_histogram(m, label_of_member(row, "profile"), json_object_get(row, m->key), out);
	}
}

/* --- all of them --- */

void service_metrics_print(const json_t *stats, const json_t *runs, FILE *out)
{
	for (size_t i = 0; i < ARRAY_LEN(metrics); i++) {
		exposition_print_head(out, metrics[i].name, metrics[i].type, metrics[i].help);
		metrics[i].samples(&metrics[i], stats, runs, out);
	}
}

void service_metrics_print_mdoc(FILE *out)
{
	fputs(".Bl -tag -width Ds\n", out);
	for (size_t i = 0; i < ARRAY_LEN(metrics); i++) {
		fprintf(out, ".It Cm %s Pq %s%s%s\n", metrics[i].name, metrics[i].type, metrics[i].labels ? " by " : "", metrics[i].labels ? metrics[i].labels : "");
		fprintf(out, "%s\n", metrics[i].help);
	}
	fputs(".El\n", out);
}
