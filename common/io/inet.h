/* inet.h - a TCP socket that listens at an address written in numbers. */
#pragma once
#include "err.h"

#include <sys/socket.h>

/* host: 127.0.0.1, ::1 or the like; "localhost" is 127.0.0.1. False: it is no address. */
must_use bool inet_address(const char *host, uint64_t port, struct sockaddr_storage *ret, socklen_t *len);

/* The socket, close-on-exec, which does not block; -1. */
must_use int inet_listen(const char *host, uint64_t port, struct err *e);
