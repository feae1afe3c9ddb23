/*
 * server.h - connects a client to a brigd: to a service, or to a private one that it starts.
 *
 * The service is the first socket that exists: $BRIG_SOCKET, in the user's
 * runtime directory, in the host's. If there is none, and none is enabled in
 * systemd, a private brigd is started: it has the caller's own rights, serves
 * this one connection and ends with it.
 */
#pragma once
#include "place.h"

#define SERVER_SOCKET "/run/brig/brig.sock" /* of the host's service */

#include <sys/types.h>

struct server {
	int   sock;             /* SOCK_SEQPACKET */
	pid_t pid;              /* of a private brigd; 0: a service, or it was waited for */
	char  name[PLACE_MAX];  /* the socket's path or the program's, for messages */
};
#define SERVER_NONE ((struct server){ .sock = -1 })

enum server_want {
	SERVER_ANY,     /* a service, else a private one, unless a service should be there */
	SERVER_PRIVATE, /* a private one */
	SERVER_SERVICE, /* a service, or an error that says how to get one */
};

/*
 * A socket that exists and refuses is an error, and the next one is not tried:
 * a run that a service forbids must not happen without it. A private brigd
 * gets its end of the connection, the caller's environment and no other
 * descriptor.
 */
must_use int server_connect(struct server *ret, enum server_want want, struct err *e);
/* With an error when the service accepts no connection for so long: for callers with other work. 0: waits for ever. */
must_use int server_connect_within(struct server *ret, enum server_want want, unsigned ms, struct err *e);

/* Why the host's service does not start, when s is one and has said so; else false. */
bool server_failure(const struct server *s, char *why, size_t len);

/* Ends the connection, and waits for a private brigd to be gone: its exit status as from wait4(), 0 of a service. May be called twice. */
int server_close(struct server *s);
