#define _GNU_SOURCE
#include "package_list.h"

#include "fd.h"
#include "file.h"
#include "store.h"
#include "text.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD_MAX = 128 * 1024, PACKAGE_TEXT_MAX = 100, LIST_BYTES_MAX = 20 * 1024, ROW_BYTES = 32 };

/* The manifest belongs to root or to the service's user, as the tree does, but its texts are shown to other users. */
static bool is_plain_json_text(const json_t *text)
{
	return json_is_string(text) && json_string_length(text) <= PACKAGE_TEXT_MAX && text_is_plain(json_string_value(text)) &&
	       !strpbrk(json_string_value(text), "\"\\"); /* JSON would make them twice as long */
}

static json_t *copy_package_rows(const json_t *from)
{
	json_t *list  = json_array();
	size_t  bytes = 0;

	for (size_t i = 0; i < json_array_size(from); i++) {
		json_t *row  = json_array_get(from, i);
		json_t *name = json_object_get(row, "name"), *version = json_object_get(row, "version");

		if (!is_plain_json_text(name) || !is_plain_json_text(version))
			continue;
		bytes += json_string_length(name) + json_string_length(version) + ROW_BYTES;
		if (bytes > LIST_BYTES_MAX)
			break;
		json_array_append_new(list, json_pack("{sO sO}", "name", name, "version", version));
	}
	return list;
}

static size_t read_manifest_head(const struct brig_paths *places, const char *rootfs, char *head)
{
	const char *const stores[] = { places->store[0], places->store[1] };
	scoped_store_tree tree     = STORE_TREE_NONE;
	struct err        ignored;
	scoped_fd         file = -1;
	ssize_t           n;

	if (store_open_tree_in_first(stores, rootfs, &tree, &ignored) < 0)
		return 0;
	file = openat(tree.tree_fd, "../manifest.json", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	n    = file < 0 ? -1 : read(file, head, HEAD_MAX);
	return n < 0 ? 0 : (size_t)n;
}

json_t *package_list_read(const struct brig_paths *places, const char *rootfs)
{
	/* The manifest lists packages before files, of which there are thousands: so its head is enough. */
	static const char key[] = "\"packages\":";
	char             *head  = malloc(HEAD_MAX);
	size_t            len   = head ? read_manifest_head(places, rootfs, head) : 0;
	const char       *at    = len ? memmem(head, len, key, sizeof key - 1) : NULL;
	json_t           *all   = NULL, *list;

	if (at) {
		at += sizeof key - 1;
		all = json_loadb(at, len - (size_t)(at - head), JSON_DISABLE_EOF_CHECK, NULL);
	}
	list = copy_package_rows(all);
	json_decref(all);
	free(head);
	return list;
}
