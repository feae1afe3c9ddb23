/*
 * layout.h - which layers a container image is made of.
 *
 * Reads the directory of an OCI image layout, or what `docker save` writes,
 * unpacked. All of it is hostile: every text is checked, every blob is what
 * its digest says, and no link leads out of the directory. Of an index of
 * several platforms this machine's is taken; of several images, none.
 */
#pragma once
#include "digest.h"

#include <stdio.h>

#define LAYOUT_LAYERS_MAX 512
#define LAYOUT_JSON_MAX   (4 * MIB)

enum layout_kind { LAYOUT_NONE, LAYOUT_OCI, LAYOUT_DOCKER };

/* NONE when the directory is anything else, as the tree of a system is. */
enum layout_kind layout_kind(int dir);
const char     *layout_kind_name(enum layout_kind kind);

struct layout_layer {
	char     path[300]; /* in the directory, "/blobs/sha256/..." */
	char     sha256[DIGEST_HEX + 1]; /* of the file; "" when only diff_id is known */
	uint64_t size; /* likewise */
	char     diff_id[DIGEST_HEX + 1]; /* of the archive once it is not compressed */
};

struct layout {
	enum layout_kind    kind;
	char               platform[64]; /* "linux/amd64" */
	char               sha256[DIGEST_HEX + 1]; /* of its configuration: what docker calls the image's id */
	struct layout_layer layer[LAYOUT_LAYERS_MAX];
	size_t             n;
};

/* What an index has besides goes to `say`. */
must_use int layout_read(int dir, enum layout_kind kind, struct layout *ret, FILE *say, struct err *e);
/* The layer's file, checked, at its beginning; the caller's. */
must_use int layout_open_layer(int dir, const struct layout_layer *layer, struct err *e);
