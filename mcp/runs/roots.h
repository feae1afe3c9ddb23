/*
 * roots.h - the client's own folders (roots of MCP): programs can read them, as those of --ro, if a person agrees.
 *
 * With --roots only, over stdio, of a client of a revision before 2026-07-28 that has roots: there they are
 * deprecated, and nothing of an earlier request counts. The client is asked before the first call of a tool, and
 * again after it has announced that its list has changed. Calls wait meanwhile. If the client can ask a person, it
 * must, and the person's no holds until the list changes. What cannot be shown is left out, with a note on stderr. A
 * session keeps the folders with which it was opened.
 */
#pragma once
#include "call.h"

struct roots;

/* NULL: memory is short. */
must_use struct roots *roots_create(struct mcp *m);
void                   roots_destroy(struct roots *r); /* NULL is ignored */

/* False: nothing is to be asked. True: go() is called later, unless the call is cancelled. */
must_use bool roots_wait_for_list(struct call *c, void (*go)(struct call *c));
/* The list has changed, or it is another client. */
void          roots_invalidate(struct mcp *m);
