/*
 * normalise.h - the same owner, modes and times on every machine.
 *
 * Directories 0755; files 0755 when their owner may execute them, else 0644;
 * everything belongs to the user who builds, normally root, and is dated 1
 * January 1980, the oldest date that zip files can hold. A set-id bit of a file
 * is kept, so that lint sees it and refuses the tree.
 */
#pragma once
#include "err.h"

must_use int normalise_apply(int root, struct err *e);
