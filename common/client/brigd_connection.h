/*
 * brigd_connection.h - connects a client to a brigd: to a service, or to a private one that it starts.
 *
 * The service's socket is $BRIG_SOCKET if it is set, else the first that exists
 * of brig.sock in the user's runtime directory and BRIGD_SOCKET. If there is
 * none, and no service is enabled in systemd, a private brigd is started: it has
 * the caller's rights, serves this one connection and ends with it.
 */
#pragma once
#include "paths.h"

#define BRIGD_SOCKET "/run/brig/brig.sock" /* the host's service */

#include <sys/types.h>

struct brigd {
	int   sock;             /* SOCK_SEQPACKET */
	pid_t pid;              /* a private brigd that brigd_close() waits for; 0: it is a service */
	pid_t stays;            /* a service that was started for this connection and goes on after it; 0: none was started */
	bool  unusual;          /* clients find its socket, name, only by BRIG_SOCKET */
	char  name[PATH_SIZE];  /* the socket's path or the program's, for messages */
};
#define BRIGD_NONE ((struct brigd){ .sock = -1 })

enum brigd_want {
	BRIGD_ANY,     /* a service, else a private one; an error if a service is enabled and down */
	BRIGD_PRIVATE, /* a private brigd, even if there is a service */
	BRIGD_SERVICE, /* a service, or an error with how to get one */
	BRIGD_STARTED, /* a service; where no socket of one exists, one's own, which is started and stays */
};

/*
 * When a socket exists and the connection fails, that is an error and the next one
 * is not tried: a run that a service forbids must not happen without it. A private
 * brigd gets its end of the connection, the caller's environment and no other
 * descriptor of the caller.
 */
must_use int brigd_connect(struct brigd *ret, enum brigd_want want, struct err *e);
/* ms: how long to wait for a service whose backlog is full, before an error; 0: for ever. */
must_use int brigd_connect_within(struct brigd *ret, enum brigd_want want, unsigned ms, struct err *e);

/* True, with the reason in why, when s is the host's service and it could not start (failure.h). */
bool brigd_read_failure(const struct brigd *s, char *why, size_t len);

/* Closes the connection and waits for the end of a private brigd. Returns its status as from wait4(), or 0. May be called twice. */
int brigd_close(struct brigd *s);
