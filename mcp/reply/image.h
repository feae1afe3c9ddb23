/*
 * image.h - results that are images.
 *
 * A program returns an image by making its result a text of the form
 * data:image/png;base64,... (png, jpeg, gif, webp), or a list of at most four
 * of them. The client gets each as an image block, if its first bytes are of that kind.
 */
#pragma once
#include "images.h"

enum { IMAGES_MAX = 4 };

/*
 * Adds the images to the gallery. Returns what stands for the result in the text, a new reference: the result itself
 * if it neither is an image nor contains one.
 */
json_t *image_move_to_gallery(const json_t *result, struct images *g);

/*
 * The text with each long data URL of an image replaced by a short description; malloc'ed, NULL when memory is short.
 */
char *image_replace_urls_in_text(const char *text, size_t len, size_t *ret_len);
