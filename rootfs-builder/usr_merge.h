/*
 * usr_merge.h - /bin, /sbin and /lib* become links to what is below /usr.
 *
 * A cell executes nothing but what lies below /usr, its loader and shell as
 * well. Most systems are made so; of those that are not, the files are moved.
 * Of two files that would get one name, the one below /usr stays.
 */
#pragma once
#include "err.h"

/* Refuses a tree that then has no /usr, or a link in its place. */
must_use int usr_merge_apply(int root, struct err *e);
