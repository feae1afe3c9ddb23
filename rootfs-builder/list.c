#define _GNU_SOURCE
#include "list.h"

#include "file.h"
#include "manifest.h"
#include "wire.h"

#include <stdio.h>

/* "bytes" of the tree's manifest; -1 when that cannot be read. */
static json_int_t tree_size_from_manifest(const struct tree_store *s, const char *digest)
{
	scoped_bytes b    = { 0 };
	scoped_json *json = NULL;
	struct err   e;
	char         path[256];

	snprintf(path, sizeof path, "trees/%s/manifest.json", digest);
	if (file_read(s->dir, path, MANIFEST_MAX, &b, &e) < 0)
		return -1;
	json = wire_parse(b.data, b.len, MANIFEST_MAX, &e);
	return json_is_integer(json_object_get(json, "bytes")) ? json_integer_value(json_object_get(json, "bytes"))
							       : -1;
}

int list_print(const struct tree_store *s, bool json, FILE *out, struct err *e)
{
	scoped_shelf_names names = { 0 };
	scoped_json       *rows  = json_array();

	if (tree_store_list_names(s, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.n; i++) {
		const struct tree_store_name *name = &names.name[i];
		json_int_t                    size = name->digest[0] ? tree_size_from_manifest(s, name->digest) : -1;
		char                          path[1200];

		snprintf(path, sizeof path, "%s/trees/%s/tree", s->path, name->digest);
		if (name->digest[0])
			json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:o}", "name", name->name, "digest",
							      name->digest, "path", path, "size",
							      size < 0 ? json_null() : json_integer(size)));
	}
	if (json)
		return json_dumpf(rows, out, JSON_INDENT(1)) < 0 || fputc('\n', out) < 0 ? err_sys(e, "list") : 0;
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);

		fprintf(out, "%-20s %.12s  %6.1f MB  %s\n", json_string_value(json_object_get(row, "name")),
			json_string_value(json_object_get(row, "digest")),
			json_number_value(json_object_get(row, "size")) / 1e6,
			json_string_value(json_object_get(row, "path")));
	}
	return 0;
}
