/*
 * mount_points.h - makes the places that a cell mounts over, in a tree made elsewhere.
 *
 * Such a tree may have anything there. An entry of another type is replaced: a
 * link, for example, would make every run fail, because a cell follows none.
 */
#pragma once
#include "err.h"

must_use int mount_points_make(int root, struct err *e);
