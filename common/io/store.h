/*
 * store.h - the place where finished rootfs trees lie, seen by those who use one.
 *
 *   trees/SHA256/tree            the rootfs itself, never written to again
 *   trees/SHA256/manifest.json   what is in it
 *   trees/SHA256/lock            who uses the tree holds flock(LOCK_SH) on it
 *   names/NAME                   symlink to ../trees/SHA256
 *   tmp/                         work in progress of brig-rootfs
 *
 * Only brig-rootfs writes here. A run opens a tree by name and keeps both
 * descriptors for as long as something may look into the tree: the lock is what
 * keeps `brig-rootfs gc` away. This is on the way of every run: six system
 * calls, no heap. Not for after clone().
 *
 * The lock of a tree is its owner's: a stranger who could take it could keep gc
 * away for ever. A plain user who runs a tree of root's store therefore has no
 * lock: gc may take away a tree under such a run, once no name leads to it, and
 * the program then misses files. Nothing else can come of it.
 */
#pragma once
#include "err.h"

#include <time.h>

#define STORE_DIGEST   64 /* hex digits of a SHA-256 */
#define STORE_PATH_MAX 1280

struct store_tree {
	int  tree_fd; /* O_PATH */
	int  lock_fd; /* -1 in somebody else's store */
	char digest[STORE_DIGEST + 1];
	char path[STORE_PATH_MAX]; /* for people and records: STORE/trees/SHA256/tree */
};
#define STORE_TREE_NONE ((struct store_tree){ .tree_fd = -1, .lock_fd = -1 })

/* Kind MISSING, naming the command that builds it, when the store has no such rootfs. */
must_use int store_open(const char *store, const char *name, struct store_tree *ret, struct err *e);
/* In the first store that has it; the second may be empty. */
must_use int store_open_first(const char *const stores[2], const char *name, struct store_tree *ret, struct err *e);
/* When the name got its tree, in the first store that has it: a tree that was built anew is known by it. False, and *ret as it was: no such name. */
bool         store_when_named(const char *const stores[2], const char *name, struct timespec *ret);
/* The same as store_open() when the digest is known. */
must_use int store_open_digest(const char *store, const char *digest, struct store_tree *ret, struct err *e);
void         store_close(struct store_tree *t); /* may be called twice */
#define scoped_store_tree scoped(store_close) struct store_tree

/* Sixty-four lower-case hex digits and nothing else. */
bool store_is_digest(const char *text);
