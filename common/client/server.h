/*
 * server.h - brigd, from the side of whoever asks it: find one and connect, or start one.
 *
 * A service is found at $BRIG_SOCKET, else in the user's runtime directory,
 * else in the host's; the first that is there counts. Where none is, and none
 * is enabled in systemd, a private brigd is started: it has the caller's own
 * rights, serves this one connection and ends with it.
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
 * One that is there and refuses is an error, never passed over: what it would
 * have forbidden must not happen elsewhere. The private one gets no descriptor
 * of ours but its end of the connection, and our environment.
 */
must_use int server_connect(struct server *ret, enum server_want want, struct err *e);
/* A service that lets nobody in for so long is an error: for who has others to serve meanwhile. 0: waits for ever. */
must_use int server_connect_within(struct server *ret, enum server_want want, unsigned ms, struct err *e);

/* Why the host's service does not start, when s is one and has said so; else false. */
bool server_failure(const struct server *s, char *why, size_t len);

/* Ends the connection, and waits for a private brigd to be gone: its exit status as from wait4(), 0 of a service. May be called twice. */
int server_close(struct server *s);
