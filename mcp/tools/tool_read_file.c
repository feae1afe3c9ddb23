/* tool_read_file.c - a file of a session: text as text, an image as an image */
#define _GNU_SOURCE
#include "base64.h"
#include "clean.h"
#include "excerpt.h"
#include "images.h"
#include "session_use.h"
#include "text.h"
#include "tool.h"
#include "workspace_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Bytes that are kept of a file: as many as an image in a reply may have, or as a file in the directory for
 * artifacts.
 */
#define KEPT_BYTES  (IMAGES_CAPACITY / 4 * 3)
#define SAVED_BYTES (64 * MIB)
enum { TAIL = 8 * 1024 };

/* clang-format off */
static const struct argument rows[] = {
	SESSION_ARGUMENT_ROW,
	{ { "path",    FIELD_STR, 0, 1, FILE_NAME_BYTES + 32, 0, "", NULL, NULL }, true,
	  "Path below /workspace" },
	{ { "offset",  FIELD_COUNT, 0, 1, INT32_MAX, FIELD_UNSET, "First line", NULL, NULL }, false,
	  "The first line, from 1" },
	{ { "limit",   FIELD_COUNT, 0, 1, INT32_MAX, FIELD_UNSET, "Lines", NULL, NULL }, false,
	  "How many lines; as many as fit into a reply are shown" },
	{ { 0 }, false, NULL },
};
/* clang-format on */

struct work {
	struct call         *call;
	json_t              *arguments;
	const char          *path; /* borrowed from arguments */
	struct session_files files;
	bool                 found, below; /* the file was found; it is a directory with files */
	uint64_t             left_out;     /* the reason why it was left out + 1; 0: it was not */
	bool                 changed;      /* while it was read: its bytes are of two moments */
	uint64_t             bytes;
	char                *data; /* its first bytes */
	size_t               len, room, keep;
	uint64_t             from, limit; /* the lines that were asked for, from 1 on; from 0: not by line */
	uint64_t             line, upto;  /* the line that comes, and the last one that is in data, whole or in part */
	bool                 last_is_open; /* no newline has ended the last line yet */
	bool                 is_full;     /* of what was asked for, a part had no room */
	char                 tail[TAIL]; /* its last bytes, of those that are not in data */
	size_t               tail_len;
};

static void read_file_work_free(struct call *c)
{
	struct work *w = c->work;

	c->cancel = NULL;
	session_files_done(&w->files);
	json_decref(w->arguments);
	free(w->data);
	free(w);
}

static void read_file_answer(struct work *w, json_t *content, bool is_error)
{
	struct call *c = w->call;

	read_file_work_free(w->call);
	tool_answer_blocks(c, content, NULL, is_error);
}

/* Takes text over. */
static void read_file_answer_text(struct work *w, json_t *text, bool is_error)
{
	read_file_answer(w, json_pack("[{ss so}]", "type", "text", "text", text ? text : json_string("out of memory")),
			 is_error || !text);
}

/* --- the form of the answer --- */

/* false: it is not an image that clients show. */
static bool try_answer_image(struct work *w)
{
	const char *type   = w->len == w->bytes ? images_detect_type(w->data, w->len) : NULL;
	char       *data   = type ? base64_encode(w->data, w->len) : NULL;
	size_t      len    = data ? strlen(data) : 0;
	bool        is_one = data && len <= IMAGES_CAPACITY && images_is_showable(type, data, len);

	if (is_one)
		read_file_answer(w,
				 json_pack("[{ss so} {ss ss ss}]", "type", "text", "text",
					   json_sprintf("[%s, %zu bytes, shown below]", type, w->len), "type", "image",
					   "data", data, "mimeType", type),
				 false);
	free(data);
	return is_one;
}

static void answer_text_excerpt(struct work *w)
{
	size_t         head_len = 0, tail_len = 0, len = 0;
	bool           is_cut = w->tail_len > 0;
	char *head = clean_text(w->data ? w->data : "", is_cut ? clean_whole_characters(w->data, w->len) : w->len,
				false, &head_len);
	size_t         from   = is_cut ? clean_next_boundary(w->tail, w->tail_len, 0) : 0;
	char *tail = is_cut ? clean_text(w->tail + from, w->tail_len - from, false, &tail_len) : NULL, *text = NULL;
	struct excerpt x   = { head, head_len, tail, tail_len, w->bytes, NULL };
	FILE          *out = head && (tail || !is_cut) ? open_memstream(&text, &len) : NULL;

	if (out) {
		excerpt_print(out, &x, w->call->mcp->settings->text_bytes);
		fclose(out);
	}
	read_file_answer_text(w, text ? json_stringn(text, len) : NULL, false);
	free(text);
	free(head);
	free(tail);
}

/* --- by line --- */

static size_t keep_file_bytes(struct work *w, const char *bytes, size_t len);

/* The rest of a line that has no room is left out, and all lines after it. */
static void keep_wanted_line(struct work *w, const char *bytes, size_t len)
{
	size_t room = w->call->mcp->settings->text_bytes, n = w->len + len <= room ? len : room - w->len;

	if (w->is_full || w->line < w->from || (w->limit && w->line - w->from >= w->limit) || !len)
		return;
	w->is_full = n < len;
	if (w->is_full && w->upto && w->upto < w->line && n < len) /* not a part of a line that is not the first */
		n = 0;
	w->upto = n ? w->line : w->upto;
	(void)keep_file_bytes(w, bytes, n);
}

static void keep_wanted_lines(struct work *w, const char *bytes, size_t len)
{
	while (len) {
		const char *end = memchr(bytes, '\n', len);
		size_t      n   = end ? (size_t)(end - bytes) + 1 : len;

		keep_wanted_line(w, bytes, n);
		w->line += end != NULL;
		w->last_is_open = !end;
		bytes += n;
		len -= n;
	}
}

static void answer_kept_lines(struct work *w)
{
	uint64_t total = w->line - !w->last_is_open;
	size_t   len   = 0;
	char    *text =
		clean_text(w->data ? w->data : "", clean_whole_characters(w->data ? w->data : "", w->len), false, &len);

	if (text && w->upto < total)
		read_file_answer_text(w,
			       json_sprintf("%s%s[lines %" PRIu64 " to %" PRIu64 " of %" PRIu64 "; offset=%" PRIu64
					    " goes on]",
					    text, len && text[len - 1] == '\n' ? "" : "\n", w->from, w->upto, total,
					    w->upto + 1),
			       false);
	else
		read_file_answer_text(w, text ? json_stringn(text, len) : NULL, false);
	free(text);
}

static void answer_lines_or_refuse(struct work *w)
{
	char text[200];

	if (w->from > w->line - !w->last_is_open && w->from > 1) {
		snprintf(text, sizeof text, "offset: the file has %" PRIu64 " lines", w->line - !w->last_is_open);
		tool_end_work_with_text(w->call, text, true);
	} else if (w->len && memchr(w->data, 0, w->len)) {
		tool_end_work_with_text(w->call, "offset: the file is not text; leave offset and limit out", true);
	} else {
		answer_kept_lines(w);
	}
}

static void answer_binary(struct work *w)
{
	const char *type = images_detect_type(w->data, w->len), *kind = type ? type : "binary";
	const char *slash = strrchr(w->path, '/');
	struct err  e     = { 0 };
	char       *path  = NULL;
	json_t     *text;

	if (w->call->mcp->artifacts && w->len == w->bytes)
		path = artifacts_save(w->call->mcp->artifacts, slash ? slash + 1 : w->path, w->data, w->len, &e);
	if (*e.text)
		fprintf(stderr, "brig-mcp: %s\n", e.text);
	if (path)
		text = json_sprintf("[%s, %" PRIu64 " bytes, saved as %s]", kind, w->bytes, path);
	else if (type)
		text = json_sprintf(
			"[%s, %" PRIu64
			" bytes, too large to be shown: %u KiB is the most; save it smaller with execute_code]",
			kind, w->bytes, (unsigned)(KEPT_BYTES / KIB));
	else
		text = json_sprintf("[%s, %" PRIu64 " bytes, not shown: read it with execute_code]", kind, w->bytes);
	free(path);
	read_file_answer_text(w, text, false);
}

/* --- what comes --- */

static void on_file_transferred(void *owner, const struct err *why)
{
	struct work *w = owner;
	char         text[300];

	if (why) {
		tool_end_work_with_text(w->call, why->text, true);
	} else if (!w->found) {
		snprintf(text, sizeof text, "path: \"%.100s\" %s", w->path,
			 w->left_out ? workspace_file_left_out_text(w->left_out - 1)
			 : w->below  ? "is a directory; list_files shows what is in it"
				     : "is not there; list_files shows what is");
		tool_end_work_with_text(w->call, text, true);
	} else if (w->changed) {
		snprintf(text, sizeof text,
			 "path: \"%.100s\" was changed while it was read; read it again when the program that writes "
			 "it is done",
			 w->path);
		tool_end_work_with_text(w->call, text, true);
	} else if (w->from) {
		answer_lines_or_refuse(w);
	} else if (!try_answer_image(w)) {
		size_t whole = w->len == w->bytes ? w->len : clean_whole_characters(w->data, w->len);

		if (!w->len || (!memchr(w->data, 0, whole) && text_is_utf8(w->data, whole)))
			answer_text_excerpt(w);
		else
			answer_binary(w);
	}
}

/* Takes only the file that was asked for. */
static bool on_file_entry(void *owner, const struct file_entry *entry, const char *name)
{
	struct work *w = owner;

	if (w->found) {
		w->changed = entry->kind == FILE_LEFT;
		return w->changed;
	}
	if (strcmp(name, w->path) != 0) {
		w->below = true;
		return false;
	}
	if (entry->kind == FILE_LEFT)
		w->left_out = entry->bytes + 1;
	w->found = entry->kind == FILE_REGULAR || entry->kind == FILE_EXECUTABLE;
	w->bytes = entry->bytes;
	w->keep  = w->call->mcp->artifacts && w->bytes <= SAVED_BYTES ? SAVED_BYTES : KEPT_BYTES;
	return w->found;
}

static size_t keep_file_bytes(struct work *w, const char *bytes, size_t len)
{
	size_t n = w->keep - w->len < len ? w->keep - w->len : len, room = w->room ? w->room : 4096;
	char  *grown;

	while (room < w->len + n)
		room *= 2;
	grown = !n ? NULL : room > w->room ? realloc(w->data, room) : w->data;
	if (!grown)
		return 0;
	w->data = grown;
	w->room = room > w->room ? room : w->room;
	memcpy(w->data + w->len, bytes, n);
	w->len += n;
	return n;
}

static bool on_file_bytes(void *owner, const char *bytes, size_t len)
{
	struct work *w = owner;
	size_t       n, rest, old;

	if (w->from) {
		keep_wanted_lines(w, bytes, len);
		return true;
	}
	n = keep_file_bytes(w, bytes, len);
	if (n == len)
		return true;
	rest = len - n < TAIL ? len - n : TAIL;
	old  = w->tail_len < TAIL - rest ? w->tail_len : TAIL - rest;
	memmove(w->tail, w->tail + w->tail_len - old, old);
	memcpy(w->tail + old, bytes + len - rest, rest);
	w->tail_len = old + rest;
	return true;
}

/* --- the question --- */

static int read_file_start(struct work *w, struct err *e)
{
	static const struct transfer_events events = { .read  = { on_file_entry, on_file_bytes },
						       .ended = on_file_transferred };
	const char                         *name   = named_session_parse_argument(w->arguments, e);
	struct named_session               *s      = name ? named_session_find_open(w->call, name, e) : NULL;
	const json_t                       *from   = json_object_get(w->arguments, "offset");
	char                               *pattern, *out = NULL;
	size_t                              len = 0;

	w->path = s ? workspace_file_parse_path(json_string_value(json_object_get(w->arguments, "path")), e) : NULL;
	if (!w->path)
		return -1;
	pattern = workspace_file_exact_pattern(w->path);
	if (pattern)
		out = workspace_file_make_request(FILE_GET, pattern, &len);
	free(pattern);
	if (!out)
		return err_set(e, ERR_LIMIT, "path: is too long");
	w->line  = 1;
	w->limit = (uint64_t)json_integer_value(json_object_get(w->arguments, "limit"));
	w->from  = json_is_integer(from) ? (uint64_t)json_integer_value(from) : w->limit ? 1 : 0;
	session_files_start(&w->files, s, out, len, &events, w);
	return 0;
}

static void read_file_call(struct call *c, const json_t *given)
{
	struct work *w = tool_work_create(c, sizeof *w, read_file_work_free);
	struct err   e;

	if (!w)
		return;
	w->call      = c;
	w->arguments = arguments_parse(rows, given, NULL, &e);
	if (!w->arguments || read_file_start(w, &e) < 0)
		tool_end_work_with_text(w->call, e.text, true);
}

const struct tool tool_read_file = {
	.name        = "read_file",
	.description = "Read a file of a session: text (long ones cut; offset and limit count lines) or an image.",
	.manual = "Read a file of a session: text as text, of long ones the beginning and the end, or with offset and "
		  "limit the lines that are asked for; an image as one. What is neither, or too large, "
		  "is named with its size, and with --artifacts saved.",
	.arguments  = rows,
	.read_only  = true,
	.idempotent = true,
	.in_session = true,
	.call       = read_file_call,
};
