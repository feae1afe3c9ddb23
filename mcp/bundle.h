/*
 * bundle.h - one value as a program showed it, in several kinds at once (brig-protocol(7), THE REPORT): what a model gets of it.
 *
 * A picture if there is one, else text. Of a report that was checked; its texts are hostile all the same.
 */
#pragma once
#include "gallery.h"

/* Does it have a picture that clients show? */
bool bundle_has_picture(const json_t *bundle);

/* Words for the text of the reply, clean; a new reference. Pictures go to the gallery. NULL: there is nothing to tell. */
json_t *bundle_take(const json_t *bundle, struct gallery *g);
