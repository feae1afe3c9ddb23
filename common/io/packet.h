/*
 * packet.h - one struct and a few descriptors over a SOCK_SEQPACKET socket.
 *
 * A packet arrives whole or not at all. Sending is one system call and may be
 * done after clone(). Received descriptors are close-on-exec.
 */
#pragma once
#include "defs.h"

#include <sys/types.h>

enum { PACKET_FDS_MAX = 32 };

/* n: at most PACKET_FDS_MAX. Returns 0 or -errno; there is no SIGPIPE. */
int packet_send(int sock, const void *bytes, size_t len, const int *fds, size_t n);
/* Does not wait: -EAGAIN when the socket is full. */
int packet_send_nowait(int sock, const void *bytes, size_t len, const int *fds, size_t n);

/*
 * Returns the number of bytes: 0 at the end of file, -1 with errno. *n: how many descriptors came with them; the
 * caller owns them. A packet without bytes is the end, too: its descriptors are closed, and *n is 0. More descriptors
 * than `max` (at most PACKET_FDS_MAX), or more bytes than `len`, are an error (EMSGSIZE): then all descriptors are closed.
 */
ssize_t packet_receive(int sock, void *bytes, size_t len, int *fds, size_t max, size_t *n);

/* For programs that inherit a socket from the process that starts them. */
must_use bool packet_is_socket(int fd);

/* Whether recvmsg() would return at once: with a packet, end of file or an error. False for -1. */
bool packet_is_readable(int sock);
/* Less than a quarter of the room is used: the next packet can be sent without waiting. */
bool packet_is_writable(int sock);

/* Closes a socket that an untrusted process may have filled: what waits in it is received first, and dropped. The other end gets end of file. */
void packet_close_socket(int *sock);

/* Closes received descriptors. Turns off SO_LINGER first: the sender could make close() of a socket wait with it. */
void packet_close_fds(int *fds, size_t n);
