/*
 * shown.h - the files of the host that --ro shows to programs, read-only, below /workspace.
 *
 * They are opened once, when the server starts: a path that is replaced later shows what was there then.
 */
#pragma once
#include "client_protocol.h"
#include "defs.h"

#include <jansson.h>

struct shown {
	json_t *names; /* below /workspace; owned; NULL: none */
	int     fd[PROTOCOL_RO_MAX];
	size_t  n;
};

/* rows: texts, PATH or PATH:NAME. */
must_use int shown_open(struct shown *ret, const json_t *rows, struct err *e);
void         shown_close(struct shown *s);
/* Puts the names into a request that begins a jail. The descriptors go with it, in their order. */
void         shown_into(const struct shown *s, json_t *message);
/* Fills fds with copies, which the caller closes. */
must_use int shown_copy(const struct shown *s, int *fds, struct err *e);
