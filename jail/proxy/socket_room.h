/*
 * socket_room.h - how many bytes a socket of brig-proxy may hold in the kernel
 *
 * The kernel would let each grow to megabytes, and charges them to no run: hundreds of connections that are not read
 * from filled the host's memory for TCP. With few connections a socket has room for a fast download; the more there
 * are, the less each gets.
 */
#pragma once
#include "defs.h"

enum socket_end { SOCKET_OF_SERVER, SOCKET_OF_PROGRAM };

/* open: connections of all runs. Call it before connect(): the window that TCP offers is chosen there. */
void socket_buffers_set(int fd, enum socket_end end, uint64_t open);
