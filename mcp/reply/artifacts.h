/*
 * artifacts.h - a directory for data that replies cannot have: large pictures, and kinds of data that clients do not
 * show.
 *
 * Clients ignore links to resources, so a reply has the path. Names and bytes come from programs in jails: a file
 * is always new, directly in the directory, not executable, and its name has plain letters only.
 */
#pragma once
#include "err.h"

struct artifacts;

/* Creates the directory if it does not exist. NULL with *e. */
struct artifacts *artifacts_create(const char *directory, struct err *e);
void              artifacts_destroy(struct artifacts *a);

enum { ARTIFACT_NAME_MAX = 100 };

/*
 * Writes a file. Its name is `like` ("plot.png"), of which only letters, digits and ._- are kept, with a number if
 * the name is taken. Returns the absolute path, malloc'ed; NULL with *e.
 */
must_use char *artifacts_save(struct artifacts *a, const char *like, const void *bytes, size_t len, struct err *e);
