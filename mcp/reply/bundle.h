/*
 * bundle.h - one value that a program showed, in several MIME types (brig-protocol(7), THE REPORT): what a model gets
 * of it.
 *
 * A picture if it has one, else text. The bundle is from a report whose form was checked; its texts are hostile all
 * the same.
 */
#pragma once
#include "images.h"

/* Does it have a picture of a type that clients show? */
bool bundle_has_picture(const json_t *bundle);

/*
 * The text that stands for it in the reply, clean; a new reference. A picture goes to the gallery. NULL: it has
 * nothing that can be shown as text.
 */
json_t *bundle_add_to_reply(const json_t *bundle, struct images *g);
