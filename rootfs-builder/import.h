/*
 * import.h - makes the tree of a workspace from a system made elsewhere.
 *
 * SOURCE is a directory or a file: the tree of a system, plain or as a tar
 * archive, or an image of containers, as an OCI image layout or as docker save
 * writes it, each as a directory or as an archive. The content decides which.
 */
#pragma once
#include "recipe.h"
#include "workspace.h"

struct import {
	const char             *source;
	uint64_t                size_max; /* bytes of all files */
	const struct workspace *work; /* work/tree is made, and work/image while an image is unpacked */
	int                     store; /* the store's directory, which must not be below the source */
	int                     log, stop;
};

/* hex: the digest of an image, or empty. Prints the kind of image, and what was left out, on stderr. */
must_use int import_apply(const struct import *i, char hex[DIGEST_HEX + 1], struct err *e);
