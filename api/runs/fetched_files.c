#include "fetched_files.h"

#include "base64.h"
#include "text.h"
#include "workspace_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fetched_leave_out(struct fetched_files *f, const char *name, const char *why)
{
	if (!f->left)
		f->left = json_array();
	if (json_array_size(f->left) < 64)
		json_array_append_new(f->left, json_sprintf("%s %s", name, why));
}

/* A name that is not UTF-8 has no place in JSON. */
static void fetched_close_file(struct fetched_files *f)
{
	char *base64;

	if (!f->is_open)
		return;
	f->is_open = false;
	base64     = f->len == f->wanted ? base64_encode(f->bytes ? f->bytes : "", f->len) : NULL;
	if (base64 && json_object_set_new(f->files, f->name, json_string_nocheck(base64)) < 0)
		fetched_leave_out(f, "a file", "has a name that is not UTF-8");
	free(base64);
	free(f->bytes);
	f->bytes = NULL;
	f->room  = f->len = 0;
}

/* A path that was asked for, or one below it: a program can write into this stream what it likes. */
static bool fetched_is_asked(const struct fetched_files *f, const char *name)
{
	size_t  i;
	json_t *path;

	json_array_foreach(f->asked, i, path) {
		size_t n = json_string_length(path);

		if (strncmp(name, json_string_value(path), n) == 0 && (!name[n] || name[n] == '/'))
			return true;
	}
	return false;
}

static bool fetched_on_entry(void *owner, const struct file_entry *entry, const char *name)
{
	struct fetched_files *f = owner;

	fetched_close_file(f);
	if (++f->entries > FETCHED_ENTRIES_MAX)
		return false;
	if (!f->files)
		f->files = json_object();
	snprintf(f->name, sizeof f->name, "%s", name);
	if (entry->kind == FILE_LEFT) {
		text_make_plain(f->name);
		fetched_leave_out(f, f->name, workspace_file_left_out_text(entry->bytes));
		return true;
	}
	if (entry->kind != FILE_REGULAR && entry->kind != FILE_EXECUTABLE)
		return true;
	if (!fetched_is_asked(f, name))
		return true;
	if (entry->bytes > FETCHED_BYTES_MAX - f->sum) {
		text_make_plain(f->name);
		fetched_leave_out(f, f->name, "is more than an answer may have");
		return true; /* its bytes are ignored */
	}
	f->sum += entry->bytes;
	f->wanted  = entry->bytes;
	f->is_open = true;
	return true;
}

static bool fetched_on_bytes(void *owner, const char *bytes, size_t len)
{
	struct fetched_files *f = owner;
	size_t                room;
	char                 *grown;

	if (!f->is_open)
		return true;
	if (f->len + len > f->room) {
		for (room = f->room ? f->room : 4096; room < f->len + len; room *= 2)
			;
		if (!(grown = realloc(f->bytes, room))) {
			f->is_open = false; /* it is left out */
			return true;
		}
		f->bytes = grown;
		f->room  = room;
	}
	memcpy(f->bytes + f->len, bytes, len);
	f->len += len;
	return true;
}

const struct file_entries_reader fetched_files_reader = { .entry = fetched_on_entry, .bytes = fetched_on_bytes };

void fetched_files_finish(struct fetched_files *f)
{
	fetched_close_file(f);
	if (!f->files)
		f->files = json_object();
}

void fetched_files_done(struct fetched_files *f)
{
	json_decref(f->files);
	json_decref(f->left);
	free(f->bytes);
	*f = (struct fetched_files){ 0 };
}
