/* tool_list_files.c - which files a session has */
#define _GNU_SOURCE
#include "clean.h"
#include "session_argument.h"
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
	  "Which files, as *.csv or out/*, where *, ? and [] stop at a slash; a directory stands for all that is in it. Default: all" },
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

static void work_free(struct work *w)
{
	w->call->cancel = NULL;
	session_files_stop(&w->files);
	json_decref(w->arguments);
	json_decref(w->found);
	free(w);
}

static void cancel(struct call *c)
{
	work_free(c->work);
}

/* --- the answer --- */

static char *text_of(const struct work *w)
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
		fprintf(out, "%10lld  %s\n", (long long)json_integer_value(json_object_get(row, "bytes")), json_string_value(json_object_get(row, "path")));
		shown++;
	}
	if (shown < w->n)
		fprintf(out, "... and %zu%s more; a glob names fewer\n", w->n - shown, w->n > LISTED_MAX ? " or" : "");
	if (!w->n)
		fputs("There are no such files in /workspace.\n", out);
	fclose(out);
	return text;
}

static void answer(struct work *w)
{
	struct call *c     = w->call;
	bool         text  = c->mcp->settings->reply == REPLY_TEXT;
	char        *words = text ? text_of(w) : NULL;
	json_t      *data  = json_pack("{sO si}", "files", w->found, "left_out", (int)(w->n - json_array_size(w->found)));

	work_free(w);
	if (text)
		tool_answer_text(c, words ? words : "out of memory", !words);
	else
		tool_answer_data(c, json_incref(data), false);
	json_decref(data);
	free(words);
}

static void refuse(struct work *w, const struct err *why)
{
	struct call *c = w->call;

	work_free(w);
	tool_answer_text(c, why->text, true);
}

/* --- what comes --- */

static void on_over(void *owner, const struct err *why)
{
	struct work *w = owner;

	if (why)
		refuse(w, why);
	else
		answer(w);
}

/* The sender is in the jail, and may never end: at most LISTED_MAX entries are taken. */
static bool on_entry(void *owner, const struct file_entry *entry, const char *name)
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

static bool on_bytes(void *owner, const char *bytes, size_t len)
{
	(void)owner, (void)bytes, (void)len;
	return true;
}

/* --- the question --- */

static char *question_of(const char *glob, size_t *len, struct err *e)
{
	const char *path = *glob ? workspace_file_path(glob, e) : "*";
	char       *made = NULL;
	FILE       *out  = path ? open_memstream(&made, len) : NULL;

	if (!out)
		return NULL;
	transfer_add(out, FILE_END, "", NULL, 0);
	transfer_add(out, FILE_LIST, path, NULL, 0);
	transfer_add(out, FILE_END, "", NULL, 0);
	return fclose(out) == 0 ? made : NULL;
}

static int begin(struct work *w, struct err *e)
{
	static const struct transfer_events events = { .read = { on_entry, on_bytes }, .ended = on_over };
	const char                         *name = session_argument_name(w->arguments, e), *glob = json_string_value(json_object_get(w->arguments, "glob"));
	struct named_session               *s   = name ? session_argument_find(w->call, name, e) : NULL;
	size_t                              len = 0;
	char                               *out = s ? question_of(glob ? glob : "", &len, e) : NULL;

	if (!out)
		return -1;
	session_files_begin(&w->files, s, out, len, &events, w);
	return 0;
}

static void call(struct call *c, const json_t *given)
{
	struct err   e = { .text = "out of memory" };
	struct work *w = tool_work(c, sizeof *w, cancel);

	if (!w)
		return;
	w->call      = c;
	w->found     = json_array();
	w->arguments = arguments_take(rows, given, NULL, &e);
	if (!w->arguments || begin(w, &e) < 0)
		refuse(w, &e);
}

const struct tool tool_list_files = {
	.name        = "list_files",
	.description = "List a session's files with their sizes.",
	.manual      = "List the files of a session with their sizes in bytes, at most 1000.",
	.arguments   = rows,
	.read_only   = true,
	.destructive = false,
	.idempotent  = true,
	.open_world  = false,
	.in_session  = true,
	.call        = call,
};
