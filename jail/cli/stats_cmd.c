/* stats_cmd.c - brig stats: what the brigd that runs here has done, and what it costs */
#include "ask.h"
#include "command.h"
#include "text.h"

static void print_up(const json_t *reply)
{
	json_int_t seconds = ask_figure(reply, "uptime_ms") / 1000;

	printf("up          %" JSON_INTEGER_FORMAT " d %02d:%02d:%02d, connections %" JSON_INTEGER_FORMAT "\n", seconds / 86400,
	       (int)(seconds / 3600 % 24), (int)(seconds / 60 % 60), (int)(seconds % 60), ask_figure(reply, "connections"));
}

static void print_runs(const json_t *reply)
{
	const json_t *runs = json_object_get(reply, "runs");
	const char   *reason, *before = "ended       ";
	json_t       *times;
	char          name[32];

	printf("runs        started %" JSON_INTEGER_FORMAT ", running %" JSON_INTEGER_FORMAT ", refused %" JSON_INTEGER_FORMAT "\n",
	       ask_figure(runs, "started"), ask_figure(reply, "running"), ask_figure(reply, "refused"));
	json_object_foreach(json_object_get(runs, "ended"), reason, times)
	{
		if (json_integer_value(times) == 0)
			continue;
		snprintf(name, sizeof name, "%s", reason);
		text_make_plain(name);
		printf("%s%s %" JSON_INTEGER_FORMAT, before, name, json_integer_value(times));
		before = ", ";
	}
	if (*before == ',')
		putchar('\n');
}

static void print_profiles(const json_t *profiles)
{
	for (size_t i = 0; i < json_array_size(profiles); i++) {
		const json_t *row = json_array_get(profiles, i);
		char          name[64];

		printf("profile     %s: ready %" JSON_INTEGER_FORMAT ", building %" JSON_INTEGER_FORMAT ", running %" JSON_INTEGER_FORMAT "\n",
		       ask_text(json_object_get(row, "name"), name, sizeof name), ask_figure(row, "ready"), ask_figure(row, "building"), ask_figure(row, "running"));
	}
}

static void print_process(const json_t *reply, const char *key)
{
	const json_t *row = json_object_get(reply, key), *memory = json_object_get(row, "memory_bytes"), *cpu = json_object_get(row, "cpu_ms");

	if (!json_is_object(row))
		return;
	printf("%-11s pid %" JSON_INTEGER_FORMAT, key, ask_figure(row, "pid"));
	if (json_is_integer(memory))
		printf(", memory %.1f MiB", (double)json_integer_value(memory) / MIB);
	if (json_is_number(cpu))
		printf(", cpu %.0f ms", json_number_value(cpu));
	putchar('\n');
}

static void print_confinement(const json_t *list)
{
	char text[64];

	fputs("held by     ", stdout);
	for (size_t i = 0; i < json_array_size(list); i++)
		printf("%s%s", i ? ", " : "", ask_text(json_array_get(list, i), text, sizeof text));
	puts(json_array_size(list) ? "" : "nothing");
}

static void print_stats(const json_t *reply)
{
	print_up(reply);
	print_runs(reply);
	print_profiles(json_object_get(reply, "profiles"));
	print_process(reply, "door");
	print_process(reply, "keeper");
	print_confinement(json_object_get(reply, "confinement"));
}

int stats_main(int argc, char **argv)
{
	struct ask a = { 0 };
	struct err e;
	json_t    *reply;
	int        status;

	if (ask_words(&a, argc, argv, 0, "brig stats [--json]", "What the brigd that runs here has done so far, and what it costs.", &status) < 0)
		return status;
	reply = ask(json_pack("{ss}", "op", "stats"), &e);
	if (!reply) {
		fprintf(stderr, "brig stats: %s\n", e.text);
		return STATUS_FAILED;
	}
	if (a.json)
		ask_print_json(reply);
	else
		print_stats(reply);
	json_decref(reply);
	return STATUS_OK;
}
