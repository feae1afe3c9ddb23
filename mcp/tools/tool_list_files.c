/* tool_list_files.c - which files a session has */
#define _GNU_SOURCE
#include "clean.h"
#include "member.h"
#include "session_use.h"
#include "tool.h"
#include "workspace_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LISTED_MAX = 1000,
       SHOWN_MAX  = 200,
       TEXT_MAX   = 8 * 1024 };

/* clang-format off */
static const struct argument rows[] = {
	SESSION_ARGUMENT_ROW,
	{ { "glob",    FIELD_STR, 0, 0, 1024,              0, "As \"out/*.csv\"; default: all", NULL, NULL }, false,
	  "Which files, as *.csv or out/*, where *, ? and [] stop at a slash; a directory stands for all that is in "
	  "it. Default: all" },
	{ { 0 }, false, NULL },
};
/* clang-format on */

struct work {
	struct call         *call;
	json_t              *arguments;
	struct session_files files;
	json_t              *found; /* rows of path and bytes */
	size_t               n;     /* entries that came, with those that are not in found */
};

static void list_files_work_free(struct call *c)
{
	struct work *w = c->work;

	c->cancel = NULL;
	session_files_done(&w->files);
	json_decref(w->arguments);
	json_decref(w->found);
	free(w);
}

/* --- the answer --- */

static char *file_list_to_text(const struct work *w)
{
	char   *text = NULL;
	size_t  len, i, shown = 0;
	json_t *row;
	FILE   *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	json_array_foreach(w->found, i, row) {
		if (shown == SHOWN_MAX || ftell(out) > TEXT_MAX)
			break;
		fprintf(out, "%10lld  %s\n", (long long)json_integer_value(json_object_get(row, "bytes")),
			json_string_value(json_object_get(row, "path")));
		shown++;
	}
	if (shown < w->n)
		fprintf(out, "... and %zu%s more; a glob names fewer\n", w->n - shown, w->n > LISTED_MAX ? " or" : "");
	if (!w->n)
		fputs("There are no such files in /workspace.\n", out);
	fclose(out);
	return text;
}

/* --- what comes --- */

/* The sender is in the jail, and may never end: at most LISTED_MAX entries are taken. */
static bool on_listed_file(void *owner, const struct file_entry *entry, const char *name)
{
	struct work *w   = owner;
	size_t       len = 0;
	char        *text;

	if (entry->kind != FILE_LIST)
		return true;
	if (++w->n > LISTED_MAX)
		return false;
	text = clean_text(name, strlen(name), false, &len);
	if (text && entry->bytes <= INT64_MAX)
		json_array_append_new(w->found, json_pack("{ss sI}", "path", text, "bytes", (json_int_t)entry->bytes));
	free(text);
	return true;
}

static void on_listing_ended(void *owner, const struct err *why)
{
	struct work *w       = owner;
	struct call *c       = w->call;
	bool         as_text = c->mcp->settings->reply == REPLY_TEXT;
	char        *text;
	json_t      *data;

	if (why) {
		tool_end_work_with_text(c, why->text, true);
		return;
	}
	text = as_text ? file_list_to_text(w) : NULL;
	data = json_pack("{sO si}", "files", w->found, "left_out", (int)(w->n - json_array_size(w->found)));
	list_files_work_free(c);
	if (as_text)
		tool_answer_text(c, text ? text : "out of memory", !text);
	else
		tool_answer_data(c, json_incref(data), false);
	json_decref(data);
	free(text);
}

/* --- the question --- */

static int list_files_start(struct work *w, struct err *e)
{
	static const struct transfer_events events = { .read = { .entry = on_listed_file }, .ended = on_listing_ended };
	const char                         *name   = named_session_parse_argument(w->arguments, e);
	struct named_session               *s      = name ? named_session_find_open(w->call, name, e) : NULL;
	const char                         *glob   = member_text(w->arguments, "glob"), *path = *glob ? NULL : "*";
	size_t                              len    = 0;
	char                               *out    = NULL;

	if (s && *glob)
		path = workspace_file_parse_path(glob, e);
	if (s && path)
		out = workspace_file_make_request(FILE_LIST, path, &len);

	if (!out)
		return -1;
	session_files_start(&w->files, s, out, len, &events, w);
	return 0;
}

static void list_files_call(struct call *c, const json_t *given)
{
	struct err   e = { .text = "out of memory" };
	struct work *w = tool_work_create(c, sizeof *w, list_files_work_free);

	if (!w)
		return;
	w->call      = c;
	w->found     = json_array();
	w->arguments = arguments_parse(rows, given, NULL, &e);
	if (!w->arguments || list_files_start(w, &e) < 0)
		tool_end_work_with_text(c, e.text, true);
}

const struct tool tool_list_files = {
	.name        = "list_files",
	.description = "List a session's files with their sizes.",
	.manual      = "List the files of a session with their sizes in bytes, at most 1000.",
	.arguments   = rows,
	.read_only   = true,
	.idempotent  = true,
	.in_session  = true,
	.call        = list_files_call,
};
