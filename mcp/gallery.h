/*
 * gallery.h - the pictures of one reply: as many as it has room for, and words about the others.
 *
 * Pictures come from programs. Each is checked to be of the kind that it says: a client hands it on to its model, and one that is
 * none makes the model refuse the whole conversation. None is opened here.
 */
#pragma once
#include "artifacts.h"

#include <jansson.h>

/* Of base64, in all. The most popular of clients take a result of one MiB, and its text needs room, too. */
#define GALLERY_ROOM (960 * KIB)

struct gallery {
	json_t           *content; /* blocks of the reply, appended to; owned */
	size_t            room;    /* that is left */
	struct artifacts *artifacts; /* NULL: there is no directory for what has no room */
	char              like[64];  /* how files there are called: "brig-6f0c0d5e" */
};

void gallery_init(struct gallery *g, struct artifacts *artifacts, const char *run);
void gallery_done(struct gallery *g);

/* Is it an image that clients show, as base64? type: "image/png". */
bool gallery_shows(const char *type, const char *data, size_t len);
/* One that is: words for the text of the reply, a new reference: "[image/png, 4711 bytes, shown below]". */
json_t *gallery_add(struct gallery *g, const char *type, const char *data, size_t len);
/* What no client shows: the same, where it was saved, or that it is not shown. */
json_t *gallery_save(struct gallery *g, const char *type, const char *ending, const void *bytes, size_t len);
