#define _GNU_SOURCE
#include "workspace_file.h"

#include "base64.h"
#include "text.h"
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

struct given {
	const char *path, *content, *base64;
};

/* clang-format off */
#define AT(member) offsetof(struct given, member)
const struct field workspace_file_fields[] = {
	{ "path",    FIELD_STR, AT(path),    1, FILE_NAME_BYTES + 32, 0, "Path below /workspace", NULL, NULL },
	{ "content", FIELD_STR, AT(content), 0, FIELD_ANY,            0, "Text", NULL, NULL },
	{ "base64",  FIELD_STR, AT(base64),  0, FIELD_ANY,            0, "Bytes", NULL, NULL },
	{ 0 },
};
#undef AT
/* clang-format on */

static const char *strip_prefix(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(path, prefix, n) == 0 ? path + n : path;
}

const char *workspace_file_parse_path(const char *path, struct err *e)
{
	const char *below = strip_prefix(strip_prefix(path, "/workspace/"), "./"),
		   *fault = file_name_find_fault(below, strlen(below));

	if (!fault)
		return below;
	err_set(e, ERR_BAD_SPEC, "path: \"%.100s\" %s; name a file as it lies below /workspace, like data/a.csv", path,
		*below == '/' ? "is not there" : fault);
	text_make_plain(e->text);
	return NULL;
}

/* Special characters are put into brackets, which all implementations of patterns read alike. */
char *workspace_file_exact_pattern(const char *path)
{
	char  *made = malloc(4 * strlen(path) + 1);
	size_t n    = 0;

	for (; made && *path; path++) {
		bool special = strchr("*?[\\", *path);

		if (special)
			made[n++] = '[';
		if (*path == '\\')
			made[n++] = '\\';
		made[n++] = *path;
		if (special)
			made[n++] = ']';
	}
	if (made)
		made[n] = 0;
	if (n <= FILE_NAME_BYTES)
		return made;
	free(made);
	return NULL;
}

const char *workspace_file_left_out_text(uint64_t why)
{
	static const char *const words[FILE_LEFT_COUNT] = {
		[FILE_LEFT_link]       = "is a link",
		[FILE_LEFT_special]    = "is no regular file",
		[FILE_LEFT_size]       = "is larger than /workspace",
		[FILE_LEFT_unreadable] = "cannot be read",
		[FILE_LEFT_deep]       = "has a path that is too long",
		[FILE_LEFT_room]       = "has no room in /workspace",
		[FILE_LEFT_unwritable] = "cannot be written",
		[FILE_LEFT_changed]    = "was changed while it was read",
		[FILE_LEFT_missing]    = "is not there",
		[FILE_LEFT_not_empty]  = "is a directory that is not empty",
	};

	return why < FILE_LEFT_COUNT && words[why] ? words[why] : "cannot be had";
}

/* --- what is sent --- */

char *workspace_file_make_request(enum file_kind kind, const char *pattern, size_t *len)
{
	char *made = NULL;
	FILE *out  = open_memstream(&made, len);

	if (!out)
		return NULL;
	transfer_add_entry(out, FILE_END, "", NULL, 0);
	transfer_add_entry(out, kind, pattern, NULL, 0);
	transfer_add_entry(out, FILE_END, "", NULL, 0);
	return fclose(out) == 0 ? made : NULL;
}

static int add_file_argument(FILE *out, const json_t *row, struct err *e)
{
	struct given g = { 0 };
	const char  *path;
	char        *bytes;
	size_t       len = 0;

	if (fields_decode(workspace_file_fields, row, &g, e) < 0)
		return -1;
	if (!g.path)
		return err_set(e, ERR_BAD_SPEC, "path: missing");
	path = workspace_file_parse_path(g.path, e);
	if (!path)
		return -1;
	if (!g.content == !g.base64)
		return err_set(e, ERR_BAD_SPEC, "%.60s: expected content, a text, or base64, bytes", path);
	if (g.content) {
		transfer_add_entry(out, FILE_REGULAR, path, g.content, strlen(g.content));
		return 0;
	}
	bytes = base64_decode(g.base64, strlen(g.base64), &len);
	if (!bytes)
		return err_set(e, ERR_BAD_SPEC,
			       "base64: damaged; write the standard alphabet with its padding, and no blanks");
	transfer_add_entry(out, FILE_REGULAR, path, bytes, len);
	free(bytes);
	return 0;
}

char *workspace_file_make_puts(const json_t *list, size_t *len, struct err *e)
{
	char *made = NULL;
	FILE *out  = open_memstream(&made, len);
	int   r    = 0;

	if (!out) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	if (json_is_object(list))
		r = add_file_argument(out, list, e);
	for (size_t i = 0; i < json_array_size(list) && r == 0; i++)
		if ((r = add_file_argument(out, json_array_get(list, i), e)) < 0)
			(void)err_wrap(e, "files[%zu]", i);
	transfer_add_entry(out, FILE_END, "", NULL, 0);
	transfer_add_entry(out, FILE_END, "", NULL, 0);
	if (fclose(out) == 0 && r == 0)
		return made;
	if (r == 0)
		err_set(e, ERR_LIMIT, "out of memory");
	free(made);
	return NULL;
}
