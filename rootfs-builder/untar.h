/*
 * untar.h - unpacks a hostile tar archive into a tree, or applies it as a layer of an image.
 *
 * A separate process reads the archive. It has no rights, no network and the
 * tree as its /, because libarchive and the libraries for compression parse
 * hostile bytes there. Only tar is read, compressed or not.
 */
#pragma once
#include "digest.h"
#include "extract.h"

struct untar {
	const char *name; /* for messages */
	int         from; /* a file, read from its beginning */
	bool        is_layer; /* names that begin with ".wh." are whiteouts, which remove entries */
	bool        is_first; /* the first layer: a whiteout could remove nothing */
	int         place; /* the tree; `root` of the extraction is not used */
	int         log, stop;
};

/* Fills the tree and counts its entries; hex: the SHA-256 of the uncompressed archive. */
must_use int untar_apply(const struct untar *u, struct extraction *count, char hex[DIGEST_HEX + 1], struct err *e);
