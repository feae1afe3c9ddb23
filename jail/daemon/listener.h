/*
 * listener.h - the socket that clients connect to: systemd's, or one of our own.
 *
 * Never open to more people than it should be, not even for a moment; a file
 * that an earlier service left is replaced when nobody answers behind it.
 */
#pragma once
#include "err.h"

struct listener {
	int  fd, lock;
	char path[108]; /* of our own, to be removed at the end (sweeper.h); "": systemd's */
};
#define LISTENER_NONE ((struct listener){ .fd = -1, .lock = -1 })

/* Whether systemd gave us descriptors (sd_listen_fds(3)). */
bool         listener_is_given(void);
must_use int listener_take(struct listener *ret, struct err *e);
/* For root, a file of the group brig, 0660; else one's own, 0600. is_usual: its folder is made, and others may pass through root's. */
/* What fails may have to be closed. */
must_use int listener_open(struct listener *ret, const char *path, bool is_usual, struct err *e);
void         listener_close(struct listener *l);
