/*
 * images.h - the pictures of one reply: as many as fit, and words about the others.
 *
 * Pictures come from programs. The first bytes of each are compared with its declared type: clients pass a picture on
 * to their model, and one that is invalid makes the model refuse the whole conversation. No picture is parsed here.
 */
#pragma once
#include "artifacts.h"

#include <jansson.h>

/* Bytes of base64, in all. The most popular clients accept a result of one MiB, and its text needs room, too. */
#define IMAGES_CAPACITY (960 * KIB)

struct images {
	json_t           *content; /* blocks of the reply, appended to; owned */
	size_t            room;    /* bytes that are left */
	struct artifacts *artifacts; /* NULL: what does not fit is not saved */
	char              like[64];  /* the beginning of names of files there: "brig-6f0c0d5e" */
};

void images_init(struct images *g, struct artifacts *artifacts, const char *run);
void images_done(struct images *g);

/* Is it an image that clients show? data: base64. type: "image/png". */
bool images_is_showable(const char *type, const char *data, size_t len);
/* "image/png", by the first bytes; NULL: no image that clients show. */
const char *images_detect_type(const void *bytes, size_t len);
/*
 * Adds an image for which images_is_showable() is true. Returns the text that stands for it in the reply, a new
 * reference: "[image/png, 4711 bytes, shown below]".
 */
json_t *images_add(struct images *g, const char *type, const char *data, size_t len);
/* For data that clients do not show: the same text, with the path of the file, or that it is not shown. */
json_t *images_save_unshown(struct images *g, const char *type, const char *ending, const void *bytes, size_t len);
