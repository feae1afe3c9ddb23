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

struct shown {
	json_t *names; /* below /workspace; owned; NULL: none */
	int     fd[PROTOCOL_RO_MAX];
	char   *path[PROTOCOL_RO_MAX]; /* of roots: plain, for people; NULL of others */
	size_t  n, own; /* own: how many of them --ro has named; those of the client come behind them */
};

/* rows: texts, PATH or PATH:NAME. */
must_use int shown_open(struct shown *ret, const json_t *rows, struct err *e);
void         shown_close(struct shown *s);
/*
 * Adds a folder that the client names, file:///PATH, under the last part of its path. -1 with *e: it cannot be shown:
 * it is no folder that this user can read, the whole host, a home directory, or has the name of another one in s or
 * beside.
 */
must_use int shown_add_root(struct shown *s, const struct shown *beside, const char *uri, struct err *e);
/* Those of by, which is empty then, take the place of the client's earlier ones. */
void         shown_replace(struct shown *s, struct shown *by);
/* Puts the names into a request that begins a jail. The descriptors go with it, in their order. */
void         shown_into(const struct shown *s, json_t *message);
/* Fills fds with copies, which the caller closes. */
must_use int shown_copy(const struct shown *s, int *fds, struct err *e);
