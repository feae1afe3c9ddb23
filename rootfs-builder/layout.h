/*
 * layout.h - finds the layers of a container image.
 *
 * Reads the directory of an OCI image layout, or an unpacked archive of `docker
 * save`. The content is hostile: every text is checked, every blob must have its
 * digest, and no link leads out of the directory. From an index of several
 * platforms this machine's is chosen. Several images are an error.
 */
#pragma once
#include "digest.h"

#include <stdio.h>

#define LAYOUT_LAYERS_MAX 512
#define LAYOUT_JSON_MAX   (4 * MIB)

enum layout_kind { LAYOUT_NONE, LAYOUT_OCI, LAYOUT_DOCKER };

/* LAYOUT_NONE for any other directory, such as the tree of a system. */
enum layout_kind layout_kind(int dir);
const char     *layout_kind_name(enum layout_kind kind);

struct layout_layer {
	char     path[300]; /* in the directory, "/blobs/sha256/..." */
	char     sha256[DIGEST_HEX + 1]; /* of the file; "" when only diff_id is known */
	uint64_t size; /* of the file, if sha256 is known */
	char     diff_id[DIGEST_HEX + 1]; /* SHA-256 of the uncompressed archive */
};

struct layout {
	enum layout_kind    kind;
	char               platform[64]; /* "linux/amd64" */
	char               sha256[DIGEST_HEX + 1]; /* of the image's configuration; docker calls it the image id */
	struct layout_layer layer[LAYOUT_LAYERS_MAX];
	size_t             n;
};

/* Prints on `notes` which other platforms an index has. */
must_use int layout_read(int dir, enum layout_kind kind, struct layout *ret, FILE *notes, struct err *e);
/* Opens the layer's file, after checking its size and digest. The descriptor is at offset 0 and the caller's. */
must_use int layout_open_layer(int dir, const struct layout_layer *layer, struct err *e);
