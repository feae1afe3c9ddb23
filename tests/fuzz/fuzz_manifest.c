/* fuzz_manifest.c - any bytes as a manifest: rows are sound and in order, and one text of rows has one digest */
#include "fuzz.h"
#include "manifest.h"
#include "store.h"

static void must_be_sound(const struct manifest *m, size_t i)
{
	const struct tree_entry *entry = &m->tree.entry[i];

	must_about(entry->path, tree_path_is_plain(entry->path));
	must_about(entry->path, i == 0 || strcmp(m->tree.entry[i - 1].path, entry->path) < 0);
	must_about(entry->path, entry->type < TREE_OTHER && entry->mode <= 07777);
	must_about(entry->path, entry->type == TREE_FILE ? store_is_digest(m->sha256[i]) : !*m->sha256[i] && entry->size == 0);
	must_about(entry->path, (entry->type == TREE_LINK) == (entry->target != NULL));
	must_about(entry->path, !entry->target || (*entry->target && text_is_plain(entry->target))); /* it could forge a line */
}

static void must_be_equal(const struct manifest *a, const struct manifest *b)
{
	must(a->tree.n == b->tree.n && a->bytes == b->bytes && strcmp(a->digest, b->digest) == 0);
	for (size_t i = 0; i < a->tree.n; i++)
		must(strcmp(a->sha256[i], b->sha256[i]) == 0 && a->tree.entry[i].size == b->tree.entry[i].size);
}

static void must_read_the_same(const struct manifest *m)
{
	json_t                *packages = json_array();
	struct manifest_origin from     = { "fuzz", "", "amd64", packages };
	json_t                *json     = manifest_to_json(m, &from);
	char                  *text     = json_dumps(json, JSON_COMPACT);
	scoped_manifest        again    = { 0 };
	struct err             e        = { 0 };

	must(text);
	must_about(e.text, manifest_parse(text, strlen(text), &again, &e) == 0);
	must_be_equal(m, &again);
	json_decref(packages);
	json_decref(json);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_manifest m     = { 0 };
	struct err      e     = { 0 };
	uint64_t        bytes = 0;

	if (manifest_parse(data, size, &m, &e) < 0) {
		must_say_why(&e);
		must_about(e.text, strchr(e.text, ':') || begins_with(e.text, "files: row") || begins_with(e.text, "expected an object"));
		must(!m.tree.entry);
		return 0;
	}
	for (size_t i = 0; i < m.tree.n; i++) {
		must_be_sound(&m, i);
		bytes += m.tree.entry[i].size;
	}
	must(bytes == m.bytes && store_is_digest(m.digest));
	must_read_the_same(&m);
	return 0;
}
