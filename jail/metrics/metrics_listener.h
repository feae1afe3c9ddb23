/*
 * metrics_listener.h - where clients connect for figures: a TCP port, or a socket of the file system.
 *
 * The socket of the file system has the mode that umask leaves. A socket that an ended process left behind is
 * replaced; anything else of that name is left alone.
 */
#pragma once
#include "err.h"

#include <sys/un.h>

struct metrics_listener {
	int  fd;
	/* of a socket of the file system, which metrics_listener_close() removes; or "" */
	char path[sizeof((struct sockaddr_un *)0)->sun_path];
	char name[160]; /* for messages */
};
#define METRICS_LISTENER_NONE ((struct metrics_listener){ .fd = -1 })

/* at: 127.0.0.1:9464, [::1]:9464, or an absolute path. Port 0: any that is free, and name has the one. */
must_use int metrics_listener_open(struct metrics_listener *ret, const char *at, struct err *e);
void         metrics_listener_close(struct metrics_listener *l);
