/*
 * store.h - the directory of built rootfs trees, for processes that use one.
 *
 *   trees/SHA256/tree            the rootfs itself, never written to again
 *   trees/SHA256/manifest.json   what is in it
 *   trees/SHA256/lock            a process that uses the tree holds flock(LOCK_SH) on it; made by the first that misses it
 *   names/NAME                   symlink to ../trees/SHA256
 *   layers/KEY                   the same for packages that were resolved (decision 0190); its time is that of the last run with them
 *   tmp/                         work in progress of brig-rootfs
 *
 * Only brig-rootfs writes here. A run opens a tree by name and keeps both
 * descriptors for as long as a process may use the tree: the lock stops
 * `brig-rootfs gc` from removing it. Every run opens a tree, so it takes six
 * system calls and no heap. Not to be called after clone().
 *
 * Only the owner of a tree can open its lock: another user could hold it, and so
 * stop gc for ever. A plain user who runs a tree of root's store therefore has no
 * lock: gc may remove such a tree during the run, once no name leads to it, and
 * the program then misses files. There is no other harm. A store on a file system
 * that cannot be written has no locks either. So a copy needs no lock files.
 */
#pragma once
#include "err.h"

#include <time.h>

#define STORE_DIGEST   64 /* hex digits of a SHA-256 */
#define STORE_PATH_MAX 1280
#define STORE_NAMES    "names"
#define STORE_LAYERS   "layers"
#define STORE_KEY      32 /* hex digits of a layer's key */

struct store_tree {
	int  tree_fd; /* O_PATH */
	int  lock_fd; /* -1 in a store of another user, or of a file system that cannot be written */
	char digest[STORE_DIGEST + 1];
	char path[STORE_PATH_MAX]; /* STORE/trees/SHA256/tree, for messages and records */
};
#define STORE_TREE_NONE ((struct store_tree){ .tree_fd = -1, .lock_fd = -1 })

/* The caller closes *ret with store_close(). Kind MISSING, with the command that builds it, when the store has no such rootfs. */
must_use int store_open_tree(const char *store, const char *name, struct store_tree *ret, struct err *e);
/* Opens it in the first store that has it; stores[1] may be "". */
must_use int store_open_tree_in_first(const char *const stores[2], const char *name, struct store_tree *ret, struct err *e);
/* When the name was linked to its tree, in the first store that has it; changes with every build. False, and *ret untouched: no such name. */
bool         store_get_name_time(const char *const stores[2], const char *name, struct timespec *ret);
/* The same as store_open_tree() when the digest is known. */
must_use int store_open_digest(const char *store, const char *digest, struct store_tree *ret, struct err *e);
void         store_close(struct store_tree *t); /* may be called twice */
#define scoped_store_tree scoped(store_close) struct store_tree

/*
 * Opens the tree of a layer, and notes that it is used: brig-rootfs gc then keeps it for thirty days.
 * Kind MISSING: there is none.
 */
must_use int store_open_layer(const char *store, const char *key, struct store_tree *ret, struct err *e);
bool         store_is_layer_key(const char *text);

/* Exactly 64 lower-case hex digits. */
bool store_is_digest(const char *text);
