/* inet.h - a TCP socket that listens at an address written in numbers. */
#pragma once
#include "err.h"

#include <sys/socket.h>

/* host: a numeric address, like 127.0.0.1 or ::1; "localhost" is 127.0.0.1. False: it is not an address. */
must_use bool inet_parse_address(const char *host, uint64_t port, struct sockaddr_storage *ret, socklen_t *len);

bool inet_is_loopback(const struct sockaddr_storage *address); /* only this host can reach it */
bool inet_host_is_loopback(const char *host);                  /* as in inet_parse_address() */

/* The caller's socket, non-blocking and close-on-exec; -1 with *e. */
must_use int inet_listen(const char *host, uint64_t port, struct err *e);
/*
 * What the kernel has bound: the port may have been 0. url: "http://[::1]:9464" and path behind it; host: the address
 * alone, of INET6_ADDRSTRLEN bytes.
 */
void inet_format_url(int fd, const char *path, char *url, size_t len, char *host);
