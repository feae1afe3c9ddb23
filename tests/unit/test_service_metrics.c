/* test_service_metrics.c - the page that is made of brigd's answers */
#include "service_metrics.h"
#include "tap.h"

/* Of what brigd might say; NULL when the text is no JSON. */
static char *page(const char *stats, const char *runs)
{
	json_t *s = json_loads(stats, 0, NULL), *r = json_loads(runs, 0, NULL);
	char   *text = NULL;
	size_t  len  = 0;
	FILE   *out  = open_memstream(&text, &len);

	service_metrics_print(s, r, out);
	fclose(out);
	json_decref(s);
	json_decref(r);
	return text;
}

/* clang-format off */
static const struct {
	const char *name, *stats, *runs, *line;
	bool        is_there;
} rows[] = {
	{ "a count is a sample", "{\"waiting\":3}", "[]", "\nbrig_runs_waiting 3\n", true },
	{ "what is in an object is found", "{\"runs\":{\"started\":5}}", "[]", "\nbrig_runs_started_total 5\n", true },
	{ "what is in null has no sample", "{\"audit\":null}", "[]", "\nbrig_audit_entries_total ", false },
	{ "a figure that is null has none, and is no 0", "{\"keeper\":{\"pid\":1,\"memory_bytes\":null,\"cpu_ms\":null}}", "[]", "{process=\"keeper\"}", false },
	{ "milliseconds become seconds", "{\"door\":{\"cpu_ms\":250}}", "[]", "\nbrig_process_cpu_seconds_total{process=\"door\"} 0.25\n", true },
	{ "a code that did not occur is 0", "{\"refused\":{\"busy\":2}}", "[]", "\nbrig_refused_total{code=\"denied\"} 0\n", true },
	{ "and another is what it is", "{\"refused\":{\"busy\":2}}", "[]", "\nbrig_refused_total{code=\"busy\"} 2\n", true },
	{ "calls of tools are told apart by how they ended", "{\"tool_calls\":{\"ok\":4,\"denied\":0}}", "[]", "\nbrig_tool_calls_total{outcome=\"ok\"} 4\nbrig_tool_calls_total{outcome=\"denied\"} 0\n", true },
	{ "a service that counts none has no sample of them", "{}", "[]", "\nbrig_tool_calls_total{", false },
	{ "a zygote that is to be replaced serves", "{\"profiles\":[{\"name\":\"p\",\"zygote\":{\"state\":\"replaced\"}}]}", "[]", "\nbrig_zygotes{profile=\"p\"} 1\n", true },
	{ "one that starts does not", "{\"profiles\":[{\"name\":\"p\",\"zygote\":{\"state\":\"starting\"}}]}", "[]", "\nbrig_zygotes{profile=\"p\"} 0\n", true },
	{ "a profile without one is left out", "{\"profiles\":[{\"name\":\"p\",\"zygote\":null}]}", "[]", "\nbrig_zygotes{", false },
	{ "a name cannot begin another sample", "{\"profiles\":[{\"name\":\"p\\\"} 1\\nx\",\"ready\":2}]}", "[]", "\nbrig_ready_cells{profile=\"p\\\"} 1\\nx\"} 2\n", true },
	{ "runs are told apart by how they began", "{}", "[{\"profile\":\"p\",\"cold\":{\"oom\":1},\"warm\":{\"oom\":2}}]", "\nbrig_runs_total{profile=\"p\",reason=\"oom\",warm=\"true\"} 2\n", true },
	{ "a histogram has its buckets", "{}", "[{\"profile\":\"p\",\"cpu_seconds\":{\"sum\":1.5,\"buckets\":{\"1\":1,\"+Inf\":4}}}]", "\nbrig_run_cpu_seconds_bucket{profile=\"p\",le=\"1\"} 1\nbrig_run_cpu_seconds_bucket{profile=\"p\",le=\"+Inf\"} 4\n", true },
	{ "its sum, and its count, which is that of the last", "{}", "[{\"profile\":\"p\",\"cpu_seconds\":{\"sum\":1.5,\"buckets\":{\"1\":1,\"+Inf\":4}}}]", "\nbrig_run_cpu_seconds_sum{profile=\"p\"} 1.5\nbrig_run_cpu_seconds_count{profile=\"p\"} 4\n", true },
	{ "the version is a label", "{\"brig\":\"0.1.0\"}", "[]", "\nbrig_build_info{version=\"0.1.0\"} 1\n", true },
};
/* clang-format on */

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *text = page(rows[i].stats, rows[i].runs);

		if (!tap_ok(!!strstr(text, rows[i].line) == rows[i].is_there, "%s", rows[i].name))
			printf("# %s\n", text);
		free(text);
	}
	return tap_done();
}
