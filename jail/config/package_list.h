/*
 * package_list.h - which packages a rootfs is made of, from its manifest: for people who ask what they may import
 *
 * A list of {"name", "version"}, bounded, so that a message has room for it. No
 * run depends on it: if the manifest cannot be read, the list is empty.
 */
#pragma once
#include "paths.h"

#include <jansson.h>

/* New reference. */
json_t *package_list_read(const struct brig_paths *places, const char *rootfs);
