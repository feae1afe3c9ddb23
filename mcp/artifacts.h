/*
 * artifacts.h - a directory for what no reply can hold: large pictures, and kinds of data that clients do not show.
 *
 * Clients ignore links to resources, so the person at the client is told a path. Names and bytes come from programs in jails: a
 * file is always a new one, directly in the directory, not executable, with a name of plain letters.
 */
#pragma once
#include "err.h"

struct artifacts;

/* Made if it is not there. NULL with *e. */
struct artifacts *artifacts_create(const char *directory, struct err *e);
void              artifacts_destroy(struct artifacts *a);

enum { ARTIFACT_NAME_MAX = 100 };

/*
 * Writes a file whose name is made of `like` ("plot.png", of which only letters, digits and ._- stay), with a number if that is
 * taken. Its absolute path, malloc'ed; NULL with *e.
 */
must_use char *artifacts_save(struct artifacts *a, const char *like, const void *bytes, size_t len, struct err *e);
