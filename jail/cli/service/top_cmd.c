/* top_cmd.c - brig top: zygotes, ready cells and runs, on a page that is updated each second */
#define _GNU_SOURCE
#include "ask.h"
#include "command.h"
#include "page.h"
#include "terminal.h"

#include <stdlib.h>
#include <unistd.h>

struct top {
	bool     json, once;
	uint64_t delay_ms;
};

static const struct option_row options[] = {
	OPTION_SWITCH("once", '1', offsetof(struct top, once), "Print one page and exit; the default when the output is not a terminal"),
	OPTION_SWITCH("json", 0, offsetof(struct top, json), "Print one page as a JSON object: what brig stats and brig ps print"),
	{ { "delay", FIELD_MS, offsetof(struct top, delay_ms), 100, 3600000, 1000, "Time between two pages, 0.1 to 3600 seconds; default 1", NULL, NULL }, 'd', NULL, NULL, false },
	OPTION_END,
};
static const struct command_help help = {
	"brig top [OPTION]...", "Show the service's runs, its ready cells, and their memory, each second anew; q quits.", NULL,
};

/* --- one page --- */

static void print_mebibytes(const json_t *row, const char *key, FILE *out)
{
	const json_t *bytes = json_object_get(row, key);

	if (json_is_integer(bytes))
		fprintf(out, " %7.1fM", (double)json_integer_value(bytes) / MIB);
	else
		fprintf(out, " %8s", "-");
}

static void print_count_column(const json_t *row, const char *key, int width, FILE *out)
{
	const json_t *n = json_object_get(row, key);

	if (json_is_integer(n))
		fprintf(out, " %*" JSON_INTEGER_FORMAT, width, json_integer_value(n));
	else
		fprintf(out, " %*s", width, "-");
}

static void print_age_column(const json_t *row, FILE *out)
{
	const json_t *ms      = json_object_get(row, "age_ms");
	json_int_t    seconds = json_integer_value(ms) / 1000;

	if (json_is_integer(ms))
		fprintf(out, " %5" JSON_INTEGER_FORMAT ":%02d", seconds / 60, (int)(seconds % 60));
	else
		fprintf(out, " %8s", "-");
}

static void print_profile_row(const json_t *row, FILE *out)
{
	const json_t *zygote = json_object_get(row, "zygote");
	char          name[64], warm[16], state[16];

	fprintf(out, "%-16s %-7s", ask_copy_plain_text(json_object_get(row, "name"), name, sizeof name), ask_copy_plain_text(json_object_get(row, "warm"), warm, sizeof warm));
	print_count_column(row, "ready", 5, out);
	print_count_column(row, "building", 5, out);
	print_count_column(row, "running", 4, out);
	fprintf(out, "  %-9s", json_is_object(zygote) ? ask_copy_plain_text(json_object_get(zygote, "state"), state, sizeof state) : "-");
	print_count_column(zygote, "generation", 4, out);
	print_age_column(zygote, out);
	print_count_column(zygote, "runs", 7, out);
	print_mebibytes(zygote, "memory_bytes", out);
	print_mebibytes(zygote, "own_bytes", out);
	print_count_column(zygote, "forks", 5, out);
	print_mebibytes(zygote, "fork_memory_bytes", out);
	print_mebibytes(zygote, "fork_own_bytes", out);
	fputc('\n', out);
}

static void print_top_page(const json_t *stats, const json_t *list, FILE *out)
{
	const json_t *profiles = json_object_get(stats, "profiles");

	stats_print_service(stats, out);
	stats_print_processes(stats, out);
	fprintf(out, "\n%-16s %-7s READY BUILD  RUN  %-9s  GEN %8s %7s %8s %8s FORKS %8s %8s\n", "PROFILE", "WARM", "ZYGOTE", "AGE", "RUNS", "MEMORY",
		"OWN", "MEMORY", "OWN");
	for (size_t i = 0; i < json_array_size(profiles); i++)
		print_profile_row(json_array_get(profiles, i), out);
	fputc('\n', out);
	ps_print_runs(list, out);
}

/* --- asking --- */

struct figures {
	json_t *stats, *list;
};

static void top_figures_free(struct figures *f)
{
	json_decref(f->stats);
	json_decref(f->list);
	*f = (struct figures){ 0 };
}

static int top_figures_exchange(struct figures *f, struct brigd *server, struct err *e)
{
	f->stats = ask_exchange_on_connection(server, json_pack("{ss}", "op", "stats"), e);
	f->list  = f->stats ? ask_exchange_on_connection(server, json_pack("{ss}", "op", "list"), e) : NULL;
	return f->list ? 0 : -1;
}

/* --- again and again --- */

static void draw_page(const struct figures *f)
{
	char  *text = NULL;
	size_t len  = 0;
	FILE  *out  = open_memstream(&text, &len);

	if (!out)
		return;
	print_top_page(f->stats, f->list, out);
	fputs("\nq: quit\n", out);
	fclose(out);
	terminal_draw(text, len);
	free(text);
}

/* True when another page is due. */
static bool wait_for_next_page(const struct figures *f, int ms)
{
	char key = 0;

	for (;;)
		switch (terminal_wait(ms, &key)) {
		case TERMINAL_TIME:
			return true;
		case TERMINAL_RESIZED:
			draw_page(f);
			break;
		case TERMINAL_KEY:
			if (key == 'q' || key == 'Q' || key == 4) /* Ctrl-D */
				return false;
			return true;
		case TERMINAL_END:
			return false;
		}
}

static int show_live_pages(struct brigd *server, int ms, struct err *e)
{
	struct figures f = { 0 };
	int            r;

	if (terminal_open(e) < 0)
		return -1;
	do {
		top_figures_free(&f);
		r = top_figures_exchange(&f, server, e);
		if (r == 0)
			draw_page(&f);
	} while (r == 0 && wait_for_next_page(&f, ms));
	top_figures_free(&f);
	terminal_close();
	return r;
}

static int show_one_page(struct brigd *server, bool json, struct err *e)
{
	struct figures f = { 0 };
	int            r = top_figures_exchange(&f, server, e);

	if (r == 0 && json) {
		json_object_del(f.list, "reply");
		json_object_set(f.stats, "list", f.list);
		ask_print_json(f.stats);
	} else if (r == 0) {
		print_top_page(f.stats, f.list, stdout);
	}
	top_figures_free(&f);
	return r;
}

int top_main(int argc, char **argv)
{
	struct top   t      = { .delay_ms = 1000 };
	struct brigd server = BRIGD_NONE;
	struct err   e;
	int          n = options_parse(options, argc, argv, &t, &e), r;

	if (n >= 0 && n + 1 < argc)
		n = err_set(&e, ERR_BAD_SPEC, "write: %s", help.line);
	if (n < 0)
		return command_print_help_or_error(n, argv[0], options, &help, &e);
	r = ask_connect(&server, &e);
	if (r == 0)
		r = t.once || t.json || !isatty(STDOUT_FILENO) ? show_one_page(&server, t.json, &e) : show_live_pages(&server, (int)t.delay_ms, &e);
	(void)brigd_close(&server);
	return r < 0 ? command_print_error(argv[0], &e, STATUS_FAILED) : STATUS_OK;
}
