/*
 * ro_folders.h - the files of the host that --ro, and --roots, show to programs, read-only, below /workspace.
 *
 * They are opened once, when the server starts or the client names its roots: a path that is replaced later shows
 * what was there then.
 */
#pragma once
#include "client_protocol.h"
#include "defs.h"

#include <jansson.h>

enum { SHOWN_PATH_MAX = 512 }; /* of a root */

struct ro_folders {
	json_t *names; /* below /workspace; owned; NULL: none */
	int     fd[PROTOCOL_RO_MAX];
	char   *path[PROTOCOL_RO_MAX]; /* of roots: plain, for people; NULL of others */
	size_t  n, own; /* own: how many of them --ro has named; those of the client come behind them */
};

/* rows: texts, PATH or PATH:NAME. */
must_use int ro_folders_open(struct ro_folders *ret, const json_t *rows, struct err *e);
void         ro_folders_close(struct ro_folders *s);
/*
 * Adds a folder that the client names, file:///PATH, under the last part of its path. -1 with *e: it cannot be shown:
 * it is no folder that this user can read, the whole host, a home directory, or has the name of another one in s or
 * beside.
 */
must_use int ro_folders_add_root(struct ro_folders *s, const struct ro_folders *beside, const char *uri, struct err *e);
/* Those of by, which is empty then, take the place of the client's earlier ones. */
void         ro_folders_replace_roots(struct ro_folders *s, struct ro_folders *by);
/* Puts the names into a request that begins a jail. The descriptors go with it, in their order. */
void         ro_folders_put_into_request(const struct ro_folders *s, json_t *message);
/* Fills fds with copies, which the caller closes. */
must_use int ro_folders_dup_fds(const struct ro_folders *s, int *fds, struct err *e);
