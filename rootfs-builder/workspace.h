/*
 * workspace.h - a directory in the store's tmp/ for one build, removed when the build fails.
 *
 * It has the form of the tree's directory that it may become: tree/, lock, and
 * later manifest.json and recipes/. The builder holds the lock exclusively, so a
 * workspace whose lock can be taken has lost its builder, and is removed. Only
 * the user who builds can enter it: an unfinished tree may hold anything.
 */
#pragma once
#include "err.h"

#define WORKSPACE_NAME 24

struct workspace {
	int  tmp; /* the store's tmp/ */
	int  dir; /* tmp/NAME */
	int  lock;
	char name[WORKSPACE_NAME];
};
#define WORKSPACE_NONE ((struct workspace){ .tmp = -1, .dir = -1, .lock = -1 })

must_use int workspace_open(int store, struct workspace *ret, struct err *e);
/* Removes the directory, unless it was published (then name is empty), and closes all descriptors. */
void workspace_close(struct workspace *w);
#define scoped_workspace scoped(workspace_close) struct workspace

/* Removes what builders that have died left; adds their number to *n. dry: only counts. */
must_use int workspace_sweep(int store, bool dry, unsigned *n, struct err *e);
