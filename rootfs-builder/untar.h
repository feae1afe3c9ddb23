/*
 * untar.h - a hostile tar archive becomes a tree, or changes one as a layer of an image does.
 *
 * The archive is read by a process of its own that has no rights, no network
 * and the tree as its /: libarchive and what it links take every compression
 * apart in there. Only tar is read, compressed or not.
 */
#pragma once
#include "digest.h"
#include "plant.h"

struct untar {
	const char *name; /* for messages */
	int         from; /* a file, read from its beginning */
	bool        is_layer; /* names that begin with ".wh." take away what is there */
	bool        is_first; /* there is nothing that a whiteout could take away */
	int         place; /* the tree; ->root of the plant is not used */
	int         log, stop;
};

/* Fills the tree and counts; hex is of the archive's bytes once they are not compressed any more. */
must_use int untar_apply(const struct untar *u, struct plant *count, char hex[DIGEST_HEX + 1], struct err *e);
