/* inet.h - a TCP socket that listens at an address written in numbers. */
#pragma once
#include "err.h"

#include <sys/socket.h>

/* host: a numeric address, like 127.0.0.1 or ::1; "localhost" is 127.0.0.1. False: it is not an address. */
must_use bool inet_address(const char *host, uint64_t port, struct sockaddr_storage *ret, socklen_t *len);

/* The caller's socket, non-blocking and close-on-exec; -1 with *e. */
must_use int inet_listen(const char *host, uint64_t port, struct err *e);
