#define _GNU_SOURCE
#include "broker.h"

#include "file.h"
#include "trust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- open and close --- */

static void broker_log_line(void *owner, const char *line)
{
	(void)owner;
	tool_audit_print_stderr(line);
}

static int read_server_entries(struct broker *b, struct err *e)
{
	scoped_bytes text = { 0 };
	size_t       i;
	json_t      *note;

	if (trust_read(b->settings.file, SERVERS_FILE_MAX, &text, e) < 0)
		return err_wrap(e, "--servers");
	if (server_entries_parse(&b->entries, text.data, text.len, e) < 0)
		return err_wrap(e, "--servers: %s", b->settings.file);
	json_array_foreach(b->entries.notes, i, note)
		tool_audit_print_stderr(json_string_value(note));
	return 0;
}

struct broker *broker_create(struct loop *loop, const struct broker_settings *settings, struct err *e)
{
	struct broker *b = calloc(1, sizeof *b);

	if (!b) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	*b = (struct broker){ .loop = loop, .settings = *settings, .audit = { .end = { .fd = -1 } } };
	if (read_server_entries(b, e) < 0) {
		broker_destroy(b);
		return NULL;
	}
	b->server = calloc(b->entries.n + 1, sizeof *b->server);
	for (size_t i = 0; b->server && i < b->entries.n; i++)
		tool_server_init(&b->server[i], &b->entries.entry[i], b->loop, broker_log_line, NULL);
	if (!b->server)
		(void)err_set(e, ERR_LIMIT, "out of memory");
	else if (tool_audit_open(&b->audit, settings->audit, settings->audit_arguments, e) == 0)
		return b;
	else
		(void)err_wrap(e, "--tool-audit");
	broker_destroy(b);
	return NULL;
}

void broker_destroy(struct broker *b)
{
	if (!b)
		return;
	if (b->server)
		tool_servers_close(b->server, b->entries.n);
	free(b->server);
	server_entries_done(&b->entries);
	if (b->audit.end.fd >= 0)
		tool_audit_close(&b->audit);
	free(b);
}

/* --- looking up --- */

static bool name_has_server(const char *name, const char *with)
{
	size_t n = strlen(with);

	return strncmp(name, with, n) == 0 && (name[n] == '.' || !name[n]);
}

struct tool_server *broker_find_server(struct broker *b, const char *name)
{
	for (size_t i = 0; i < b->entries.n; i++)
		if (name_has_server(name, b->entries.entry[i].identifier) || name_has_server(name, b->entries.entry[i].name))
			return &b->server[i];
	return NULL;
}

const struct catalog_tool *broker_find_tool(struct broker *b, const char *name)
{
	const struct tool_server *s = broker_find_server(b, name);

	return s ? catalog_find_tool(&s->catalog, name) : NULL;
}

/* --- waiting for many --- */

static void on_server_gathered(void *owner, struct tool_server *s, const char *why)
{
	struct gathering *g = owner;

	(void)s, (void)why;
	if (--g->left)
		return;
	free(g->wait);
	g->wait = NULL;
	g->done(g->owner);
}

void broker_gather_tools(struct broker *b, struct gathering *g, const char *under)
{
	const struct tool_server *only = *under ? broker_find_server(b, under) : NULL;

	g->n    = b->entries.n;
	g->left = 1; /* held by this function, so that done() is not called before all servers were asked */
	g->wait = calloc(g->n + 1, sizeof *g->wait);
	for (size_t i = 0; g->wait && i < g->n; i++) {
		g->wait[i] = (struct server_wait){ .over = on_server_gathered, .owner = g };
		if (*under && &b->server[i] != only)
			continue;
		g->left++;
		tool_server_await(&b->server[i], &g->wait[i]);
	}
	on_server_gathered(g, NULL, NULL);
}

void gathering_leave(struct gathering *g)
{
	for (size_t i = 0; g->wait && i < g->n; i++)
		server_wait_leave(&g->wait[i]);
	free(g->wait);
	g->wait = NULL;
}

/* --- lists and texts of tools --- */

struct found {
	const struct catalog_tool *tool;
	unsigned                   rank;
};

static int compare_by_rank(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return x->rank != y->rank ? (x->rank < y->rank ? 1 : -1) : strcmp(x->tool->full, y->tool->full);
}

static size_t count_tools(const struct broker *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->entries.n; i++)
		n += b->server[i].catalog.n;
	return n;
}

static size_t rank_all_tools(const struct broker *b, const char *words, struct found *list)
{
	size_t n = 0;

	for (size_t i = 0; i < b->entries.n; i++)
		for (size_t k = 0; k < b->server[i].catalog.n; k++) {
			const struct catalog_tool *t    = &b->server[i].catalog.tool[k];
			unsigned                   rank = catalog_rank_tool(t, words);

			if (rank)
				list[n++] = (struct found){ t, rank };
		}
	return n;
}

json_t *broker_search_tools(struct broker *b, const char *words, size_t max)
{
	struct found *list = calloc(count_tools(b) + 1, sizeof *list);
	size_t        n    = list ? rank_all_tools(b, words, list) : 0;
	json_t       *made = json_array();

	if (n)
		qsort(list, n, sizeof *list, compare_by_rank);
	for (size_t i = 0; i < n && i < max; i++)
		json_array_append_new(made, catalog_tool_summary_json(list[i].tool));
	free(list);
	return made;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

json_t *broker_tool_names(struct broker *b, const char *under)
{
	const char **list = calloc(count_tools(b) + 1, sizeof *list);
	size_t       n    = 0;
	json_t      *made = json_array();

	for (size_t i = 0; list && i < b->entries.n; i++)
		for (size_t k = 0; k < b->server[i].catalog.n; k++)
			if (!*under || name_has_server(b->server[i].catalog.tool[k].full, under))
				list[n++] = b->server[i].catalog.tool[k].full;
	if (n)
		qsort(list, n, sizeof *list, compare_names);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(made, json_string(list[i]));
	free(list);
	return made;
}

json_t *broker_failed_servers(struct broker *b)
{
	json_t *made = json_array();

	for (size_t i = 0; i < b->entries.n; i++)
		if (b->server[i].state == TOOL_SERVER_RESTS)
			json_array_append_new(made, json_sprintf("%s: %s", b->entries.entry[i].identifier, b->server[i].why));
	return made;
}

char *broker_servers_text(const struct broker *b, size_t max)
{
	char  *text = NULL;
	size_t len, shown = 0;
	FILE  *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	for (; shown < b->entries.n; shown++) {
		fflush(out);
		if (len + strlen(b->entries.entry[shown].identifier) + 20 > max)
			break;
		fprintf(out, "%s%s", shown ? ", " : "", b->entries.entry[shown].identifier);
	}
	if (shown < b->entries.n)
		fprintf(out, " and %zu more", b->entries.n - shown);
	fclose(out);
	return text;
}
