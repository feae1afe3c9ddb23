/*
 * listener.h - the socket that clients connect to: systemd's, or one of our own.
 *
 * Its permissions are never too wide, not even for a moment. A socket file that an
 * earlier service left is replaced when no process listens on it.
 */
#pragma once
#include "err.h"

struct listener {
	int  fd, lock;
	char path[108]; /* of our own socket, which the sweeper removes (sweeper.h); "": systemd's socket */
};
#define LISTENER_NONE ((struct listener){ .fd = -1, .lock = -1 })

/* Whether systemd gave us descriptors (sd_listen_fds(3)). */
bool         listener_is_given_by_systemd(void);
must_use int listener_adopt_systemd_socket(struct listener *ret, struct err *e);
/*
 * Root's socket belongs to the group brig and has mode 0660; other sockets have mode 0600. is_usual: creates the
 * folder, and lets all users pass through root's. After a failure, too, listener_close() must follow.
 */
must_use int listener_open(struct listener *ret, const char *path, bool is_usual, struct err *e);
void         listener_close(struct listener *l);
