/*
 * packet.h - one struct and a few descriptors over a SOCK_SEQPACKET socket.
 *
 * Whole or not at all. Sending is one system call and may be done after
 * clone(). Received descriptors are close-on-exec.
 */
#pragma once
#include "defs.h"

#include <sys/types.h>

enum { PACKET_FDS_MAX = 32 };

/* 0 or -errno; never a signal. */
int packet_send(int sock, const void *bytes, size_t len, const int *fds, size_t n);
/* The same, but -EAGAIN where it would have to wait. */
int packet_offer(int sock, const void *bytes, size_t len, const int *fds, size_t n);

/*
 * Bytes received, as from recvmsg(): 0 at the end, -1 with errno. *n: how many descriptors came with them,
 * the caller's now. More than `max` (at most PACKET_FDS_MAX) are an error (EMSGSIZE), and so are more bytes
 * than `len`; no descriptor is kept then.
 */
ssize_t packet_receive(int sock, void *bytes, size_t len, int *fds, size_t max, size_t *n);

/* A program that another one starts with a socket asks: was it? */
must_use bool packet_is_socket(int fd);

/* Can something be received now, or its end? False of -1. */
bool packet_is_there(int sock);

/* Closes what somebody sent. A socket whose close would wait for its other end (SO_LINGER) does not. */
void packet_drop(int *fds, size_t n);
