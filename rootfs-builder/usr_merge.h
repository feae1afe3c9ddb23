/*
 * usr_merge.h - makes /bin, /sbin and /lib* links to the directories below /usr.
 *
 * A cell executes only files below /usr, and that includes the loader and the
 * shell. In most systems these directories are links already; in others the
 * files are moved. If two files would get the same name, the one below /usr
 * stays.
 */
#pragma once
#include "err.h"

/* Refuses a tree that then has no /usr, or a link in its place. */
must_use int usr_merge_apply(int root, struct err *e);
