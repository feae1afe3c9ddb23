/* stats_cmd.c - brig stats: what the running service has done, and what it costs */
#include "ask.h"
#include "command.h"
#include "page.h"
#include "text.h"

static void print_uptime(const json_t *reply, FILE *out)
{
	json_int_t seconds = ask_reply_integer(reply, "uptime_ms") / 1000;

	fprintf(out, "up          %" JSON_INTEGER_FORMAT " d %02d:%02d:%02d, connections %" JSON_INTEGER_FORMAT "\n", seconds / 86400,
	       (int)(seconds / 3600 % 24), (int)(seconds / 60 % 60), (int)(seconds % 60), ask_reply_integer(reply, "connections"));
	if (json_is_integer(json_object_get(reply, "rules_age_ms")))
		fprintf(out, "config      read %" JSON_INTEGER_FORMAT " s ago\n", ask_reply_integer(reply, "rules_age_ms") / 1000);
}

/* The sum of an object's values, which are counts. */
static json_int_t sum_counts(const json_t *counts)
{
	json_int_t  n = 0;
	const char *key;
	json_t     *times;

	json_object_foreach((json_t *)counts, key, times)
		n += json_integer_value(times);
	return n;
}

static void print_run_counts(const json_t *reply, FILE *out)
{
	const json_t *runs = json_object_get(reply, "runs");
	const char   *reason, *before = "ended       ";
	json_t       *times;
	char          name[32];

	fprintf(out, "runs        started %" JSON_INTEGER_FORMAT ", running %" JSON_INTEGER_FORMAT ", waiting %" JSON_INTEGER_FORMAT ", refused %" JSON_INTEGER_FORMAT "\n",
	       ask_reply_integer(runs, "started"), ask_reply_integer(reply, "running"), ask_reply_integer(reply, "waiting"), sum_counts(json_object_get(reply, "refused")));
	json_object_foreach(json_object_get(runs, "ended"), reason, times)
	{
		if (json_integer_value(times) == 0)
			continue;
		snprintf(name, sizeof name, "%s", reason);
		text_make_plain(name);
		fprintf(out, "%s%s %" JSON_INTEGER_FORMAT, before, name, json_integer_value(times));
		before = ", ";
	}
	if (*before == ',')
		fputc('\n', out);
}

/* Prints nothing if there were none. */
static void print_tool_call_counts(const json_t *calls, FILE *out)
{
	if (sum_counts(calls) > 0)
		fprintf(out, "tool calls  ok %" JSON_INTEGER_FORMAT ", failed %" JSON_INTEGER_FORMAT ", denied %" JSON_INTEGER_FORMAT "\n",
			ask_reply_integer(calls, "ok"), ask_reply_integer(calls, "failed"), ask_reply_integer(calls, "denied"));
}

static void print_network_counts(const json_t *network, FILE *out)
{
	if (ask_reply_integer(network, "connections") > 0)
		fprintf(out, "network     connections %" JSON_INTEGER_FORMAT ", refused %" JSON_INTEGER_FORMAT ", failed %" JSON_INTEGER_FORMAT ", received %" JSON_INTEGER_FORMAT " bytes, sent %" JSON_INTEGER_FORMAT "\n",
			ask_reply_integer(network, "connections"), ask_reply_integer(network, "refused"), ask_reply_integer(network, "failed"), ask_reply_integer(network, "bytes_in"), ask_reply_integer(network, "bytes_out"));
}

static void print_memory_bytes(const json_t *row, const char *all, const char *own, FILE *out)
{
	const json_t *bytes = json_object_get(row, all), *alone = json_object_get(row, own);

	if (!json_is_integer(bytes))
		return;
	fprintf(out, ", memory %.1f MiB", (double)json_integer_value(bytes) / MIB);
	if (json_is_integer(alone))
		fprintf(out, " (%.1f its own)", (double)json_integer_value(alone) / MIB);
}

static void print_zygote(const char *profile, const json_t *row, FILE *out)
{
	const json_t *age = json_object_get(row, "age_ms"), *forks = json_object_get(row, "forks");
	char          state[16];

	fprintf(out, "zygote      %s: %s", profile, ask_copy_plain_text(json_object_get(row, "state"), state, sizeof state));
	if (json_is_integer(age))
		fprintf(out, ", generation %" JSON_INTEGER_FORMAT ", for %.0f s and %" JSON_INTEGER_FORMAT " runs", ask_reply_integer(row, "generation"),
			(double)json_integer_value(age) / 1000, ask_reply_integer(row, "runs"));
	print_memory_bytes(row, "memory_bytes", "own_bytes", out);
	if (json_is_integer(forks))
		fprintf(out, "; ready forks %" JSON_INTEGER_FORMAT, json_integer_value(forks));
	if (json_is_integer(forks) && json_integer_value(forks) > 0)
		print_memory_bytes(row, "fork_memory_bytes", "fork_own_bytes", out);
	fputc('\n', out);
}

static void print_profile_rows(const json_t *profiles, FILE *out)
{
	for (size_t i = 0; i < json_array_size(profiles); i++) {
		const json_t *row = json_array_get(profiles, i), *zygote = json_object_get(row, "zygote");
		char          name[64], warm[16];

		fprintf(out, "profile     %s: ready %" JSON_INTEGER_FORMAT ", building %" JSON_INTEGER_FORMAT ", running %" JSON_INTEGER_FORMAT ", warm %s\n",
			ask_copy_plain_text(json_object_get(row, "name"), name, sizeof name), ask_reply_integer(row, "ready"), ask_reply_integer(row, "building"),
			ask_reply_integer(row, "running"), ask_copy_plain_text(json_object_get(row, "warm"), warm, sizeof warm));
		if (json_is_object(zygote))
			print_zygote(name, zygote, out);
	}
}

static void print_process_usage(const json_t *reply, const char *key, const char *name, FILE *out)
{
	const json_t *row = json_object_get(reply, key), *cpu = json_object_get(row, "cpu_ms");

	if (!json_is_object(row))
		return;
	fprintf(out, "%-11s pid %" JSON_INTEGER_FORMAT, name, ask_reply_integer(row, "pid"));
	print_memory_bytes(row, "memory_bytes", "own_bytes", out);
	if (json_is_number(cpu))
		fprintf(out, ", cpu %.0f ms", json_number_value(cpu));
	fputc('\n', out);
}

static void print_audit_counts(const json_t *audit, FILE *out)
{
	if (!json_is_object(audit))
		return;
	fprintf(out, "audit       entries %" JSON_INTEGER_FORMAT ", not written %" JSON_INTEGER_FORMAT ", lost by the journal %" JSON_INTEGER_FORMAT ", by the file %" JSON_INTEGER_FORMAT "\n",
		ask_reply_integer(audit, "entries"), ask_reply_integer(audit, "suppressed"), ask_reply_integer(audit, "journal_lost"), ask_reply_integer(audit, "file_lost"));
}

static void print_confinement(const json_t *list, FILE *out)
{
	char text[64];

	fputs("confined by ", out);
	for (size_t i = 0; i < json_array_size(list); i++)
		fprintf(out, "%s%s", i ? ", " : "", ask_copy_plain_text(json_array_get(list, i), text, sizeof text));
	fprintf(out, "%s\n", json_array_size(list) ? "" : "nothing");
}

void stats_print_service(const json_t *reply, FILE *out)
{
	print_uptime(reply, out);
	print_run_counts(reply, out);
	print_tool_call_counts(json_object_get(reply, "tool_calls"), out);
	print_network_counts(json_object_get(reply, "network"), out);
}

void stats_print_processes(const json_t *reply, FILE *out)
{
	print_process_usage(reply, "door", "server", out); /* keys of version 1 */
	print_process_usage(reply, "keeper", "monitor", out);
}

static void print_stats(const json_t *reply, FILE *out)
{
	stats_print_service(reply, out);
	print_profile_rows(json_object_get(reply, "profiles"), out);
	stats_print_processes(reply, out);
	print_audit_counts(json_object_get(reply, "audit"), out);
	print_confinement(json_object_get(reply, "confinement"), out);
}

int stats_main(int argc, char **argv)
{
	return ask_and_print(argc, argv, "brig stats [--json]",
			     "Print what the service has done since it started, and what it costs.",
			     "stats", print_stats);
}
