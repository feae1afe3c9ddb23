/*
 * mount_points.h - what a cell mounts over must be there before: the tree is read-only to it.
 *
 * In a tree made elsewhere, anything may be in its place. A link there
 * would make every run fail, for a cell follows none: it is replaced.
 */
#pragma once
#include "err.h"

must_use int mount_points_make(int root, struct err *e);
