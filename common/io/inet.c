#define _GNU_SOURCE
#include "inet.h"

#include "fd.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum { BACKLOG = 128 };

bool inet_parse_address(const char *host, uint64_t port, struct sockaddr_storage *ret, socklen_t *len)
{
	struct sockaddr_in  *four = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *six  = (struct sockaddr_in6 *)ret;

	*ret = (struct sockaddr_storage){ 0 };
	if (!strcasecmp(host, "localhost"))
		host = "127.0.0.1";
	if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port   = htons((uint16_t)port);
		*len             = sizeof *four;
	} else if (inet_pton(AF_INET6, host, &six->sin6_addr) == 1) {
		six->sin6_family = AF_INET6;
		six->sin6_port   = htons((uint16_t)port);
		*len             = sizeof *six;
	} else {
		return false;
	}
	return true;
}

bool inet_is_loopback(const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
	return address->ss_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

bool inet_host_is_loopback(const char *host)
{
	struct sockaddr_storage address;
	socklen_t               len;

	return inet_parse_address(host, 0, &address, &len) && inet_is_loopback(&address);
}

void inet_format_url(int fd, const char *path, char *url, size_t len, char *host)
{
	union {
		struct sockaddr_in6 six; /* first, because it is the longest: all of it is 0 at first */
		struct sockaddr_in  four;
		struct sockaddr     any;
	} address      = { 0 };
	socklen_t size = sizeof address;
	bool      is_six;

	*host = 0;
	(void)getsockname(fd, &address.any, &size);
	is_six = address.any.sa_family == AF_INET6;
	(void)inet_ntop(address.any.sa_family,
			is_six ? (const void *)&address.six.sin6_addr : &address.four.sin_addr, host, INET6_ADDRSTRLEN);
	(void)snprintf(url, len, is_six ? "http://[%s]:%u%s" : "http://%s:%u%s", host,
		       ntohs(is_six ? address.six.sin6_port : address.four.sin_port), path);
}

int inet_listen(const char *host, uint64_t port, struct err *e)
{
	struct sockaddr_storage address;
	socklen_t               len;
	const int               yes = 1;
	scoped_fd               fd  = -1;

	if (!inet_parse_address(host, port, &address, &len))
		return err_set(e, ERR_BAD_SPEC, "%.60s: expected an address, as 127.0.0.1, ::1 or 0.0.0.0", host);
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(e, "socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	if (bind(fd, (struct sockaddr *)&address, len) < 0)
		return err_sys(e, "cannot listen at %s port %llu", host, (unsigned long long)port);
	if (listen(fd, BACKLOG) < 0)
		return err_sys(e, "listen");
	return fd_take(&fd);
}
