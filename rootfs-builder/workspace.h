/*
 * workspace.h - a directory in the store's tmp/ for one build, gone when it fails.
 *
 * It looks like the tree's directory it may become: tree/, lock, and later
 * manifest.json and recipes/. Its owner holds the lock exclusively, so a
 * workspace whose lock can be taken has lost its owner and is swept away.
 * Nobody but the owner can enter it: an unfinished tree may hold anything.
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
/* Removes it, unless it was renamed away (then name is empty). */
void workspace_close(struct workspace *w);
#define scoped_workspace scoped(workspace_close) struct workspace

/* Removes what dead owners left; *n counts. */
must_use int workspace_sweep(int store, bool dry, unsigned *n, struct err *e);
