/*
 * import.h - a system made elsewhere becomes the tree of a workspace.
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
	uint64_t                size_max;
	const struct workspace *work; /* work/tree is made, and work/image if it takes one */
	int                     store; /* what must not be below the source */
	int                     log, stop;
};

/* hex is the image's, or empty. Its kind, and what was left out, goes to stderr. */
must_use int import_apply(const struct import *i, char hex[DIGEST_HEX + 1], struct err *e);
