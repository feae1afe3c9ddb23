#define _GNU_SOURCE
#include "manifest.h"

#include "fd.h"
#include "store.h"
#include "text.h"
#include "wire.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *const manifest_types[] = {
	[TREE_FILE] = "file", [TREE_DIR] = "dir", [TREE_LINK] = "link", [TREE_OTHER] = "other"
};

void manifest_done(struct manifest *m)
{
	tree_done(&m->tree);
	free(m->sha256);
	*m = (struct manifest){ 0 };
}

void manifest_print_mode(const struct tree_entry *entry, char text[8])
{
	snprintf(text, 8, "%04o", entry->type == TREE_LINK ? 0777 : entry->mode & 07777);
}

static int format_digest_line(const struct manifest *m, size_t i, char **line, struct err *e)
{
	const struct tree_entry *entry = &m->tree.entry[i];
	char                     mode[8];
	int                      n = -1;

	manifest_print_mode(entry, mode);
	switch (entry->type) {
	case TREE_FILE:
		n = asprintf(line, "file %s %" PRIu64 " %s %s\n", mode, entry->size, m->sha256[i], entry->path);
		break;
	case TREE_DIR:
		n = asprintf(line, "dir %s %s\n", mode, entry->path);
		break;
	case TREE_LINK:
		n = asprintf(line, "link %s\t%s\n", entry->path, entry->target);
		break;
	case TREE_OTHER:
		n = asprintf(line, "other %s %s\n", mode, entry->path);
		break;
	}
	return n < 0 ? err_set(e, ERR_LIMIT, "out of memory") : n;
}

static int compute_tree_digest(struct manifest *m, struct err *e)
{
	static const char first[] = "brig-tree 1\n";
	scoped_digest     d       = { 0 };

	if (digest_init(&d, e) < 0 || digest_add(&d, first, strlen(first), e) < 0)
		return -1;
	for (size_t i = 0; i < m->tree.n; i++) {
		char *line = NULL;
		int   n    = format_digest_line(m, i, &line, e), added;

		if (n < 0)
			return -1;
		added = digest_add(&d, line, (size_t)n, e);
		free(line);
		if (added < 0)
			return -1;
	}
	return digest_finish(&d, m->digest, e);
}

static int hash_entry(int root, struct manifest *m, size_t i, struct err *e)
{
	struct tree_entry *entry = &m->tree.entry[i];
	scoped_fd          fd    = -1;

	if (entry->type != TREE_FILE)
		return 0;
	fd = tree_open_entry(root, entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return err_sys(e, "read %s", entry->path);
	if (digest_compute_of_fd(fd, entry->path, &entry->size, m->sha256[i], e) < 0)
		return -1;
	m->bytes += entry->size;
	return 0;
}

static int allocate_sums(struct manifest *m, struct err *e)
{
	m->sha256 = calloc(m->tree.n ? m->tree.n : 1, sizeof *m->sha256);
	return m->sha256 ? 0 : err_set(e, ERR_LIMIT, "out of memory");
}

int manifest_make(int root, struct manifest *ret, struct err *e)
{
	scoped_manifest m = { 0 };

	if (tree_scan(root, &m.tree, e) < 0 || allocate_sums(&m, e) < 0)
		return -1;
	for (size_t i = 0; i < m.tree.n; i++)
		if (hash_entry(root, &m, i, e) < 0)
			return -1;
	if (compute_tree_digest(&m, e) < 0)
		return -1;
	*ret = m;
	m    = (struct manifest){ 0 };
	return 0;
}

/* --- JSON --- */

static json_t *entry_to_json(const struct manifest *m, size_t i)
{
	const struct tree_entry *entry = &m->tree.entry[i];
	char                     mode[8];
	json_t                  *json;

	manifest_print_mode(entry, mode);
	json = json_pack("{s:s, s:s, s:s}", "path", entry->path, "type", manifest_types[entry->type], "mode", mode);
	if (json && entry->type == TREE_FILE) {
		json_object_set_new(json, "size", json_integer((json_int_t)entry->size));
		json_object_set_new(json, "sha256", json_string(m->sha256[i]));
	}
	if (json && entry->type == TREE_LINK)
		json_object_set_new(json, "target", json_string(entry->target));
	return json;
}

json_t *manifest_to_json(const struct manifest *m, const struct manifest_origin *from)
{
	scoped_json *files = json_array();

	for (size_t i = 0; files && i < m->tree.n; i++)
		if (json_array_append_new(files, entry_to_json(m, i)) < 0)
			return NULL;
	return json_pack("{s:i, s:s, s:s, s:s, s:s, s:I, s:O, s:O}", "format", MANIFEST_FORMAT, "name", from->name,
			 "digest", m->digest, "recipe_sha256", from->recipe_sha256, "architecture", from->architecture,
			 "bytes", (json_int_t)m->bytes, "packages", from->packages, "files", files);
}

/* A row has the keys of its type and no others: otherwise two different manifests could have the same digest. */
static bool row_has_keys_of_type(enum tree_type type, const json_t *size, const char *sha, const char *target)
{
	if (type == TREE_FILE)
		return json_is_integer(size) && json_integer_value(size) >= 0 && sha && store_is_digest(sha) && !target;
	if (type == TREE_LINK)
		return !size && !sha && target && *target && text_is_plain(target);
	return !size && !sha && !target;
}

/* Parses one row of "files". brig wrote the manifest, so anything unexpected means that it was changed. */
static int parse_entry(struct manifest *m, size_t i, const json_t *json, struct err *e)
{
	struct tree_entry *entry = &m->tree.entry[i];
	const char        *before = i ? m->tree.entry[i - 1].path : "", *path = "", *type = "", *mode = "", *sha = NULL,
		   *target      = NULL;
	json_t            *size = NULL;
	bool               bad;

	bad = json_unpack((json_t *)json, "{s:s, s:s, s:s, s?o, s?s, s?s !}", "path", &path, "type", &type, "mode",
			  &mode, "size", &size, "sha256", &sha, "target", &target) < 0;
	while (entry->type < TREE_OTHER && strcmp(type, manifest_types[entry->type]) != 0)
		entry->type++;
	if (bad || entry->type == TREE_OTHER || !tree_path_is_plain(path) || strspn(mode, "01234567") != 4 || mode[4] ||
	    !row_has_keys_of_type(entry->type, size, sha, target))
		return err_set(e, ERR_PROTOCOL, "files: row %zu is not sound", i + 1);
	if (!before || strcmp(before, path) >= 0)
		return err_set(e, ERR_PROTOCOL, "files: row %zu is not in order", i + 1);
	entry->mode = (unsigned)strtoul(mode, NULL, 8);
	entry->size = (uint64_t)json_integer_value(size);
	if (__builtin_add_overflow(m->bytes, entry->size, &m->bytes))
		return err_set(e, ERR_PROTOCOL, "files: row %zu makes the tree larger than any disk", i + 1);
	snprintf(m->sha256[i], sizeof m->sha256[i], "%s", sha ? sha : "");
	entry->path   = strdup(path);
	entry->target = target ? strdup(target) : NULL;
	return entry->path && (!target || entry->target) ? 0 : err_set(e, ERR_LIMIT, "out of memory");
}

static int parse_files(struct manifest *m, const json_t *files, struct err *e)
{
	size_t n = json_array_size(files);

	if (!json_is_array(files) || n > TREE_ENTRIES_MAX)
		return err_set(e, ERR_PROTOCOL, "files: expected a list of at most %d", TREE_ENTRIES_MAX);
	m->tree.entry = calloc(n ? n : 1, sizeof *m->tree.entry);
	m->tree.n     = m->tree.entry ? n : 0;
	if (!m->tree.entry || allocate_sums(m, e) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 0; i < n; i++)
		if (parse_entry(m, i, json_array_get(files, i), e) < 0)
			return -1;
	return compute_tree_digest(m, e);
}

int manifest_parse(const void *bytes, size_t len, struct manifest *ret, struct err *e)
{
	scoped_manifest m    = { 0 };
	scoped_json    *json = wire_parse(bytes, len, MANIFEST_MAX, e);

	if (!json)
		return -1;
	if (json_integer_value(json_object_get(json, "format")) != MANIFEST_FORMAT)
		return err_set(e, ERR_PROTOCOL, "format: expected %d", MANIFEST_FORMAT);
	if (parse_files(&m, json_object_get(json, "files"), e) < 0)
		return -1;
	*ret = m;
	m    = (struct manifest){ 0 };
	return 0;
}
