#define _GNU_SOURCE
#include "inet.h"

#include "fd.h"

#include <arpa/inet.h>
#include <string.h>

enum { BACKLOG = 128 };

bool inet_address(const char *host, uint64_t port, struct sockaddr_storage *ret, socklen_t *len)
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

int inet_listen(const char *host, uint64_t port, struct err *e)
{
	struct sockaddr_storage address;
	socklen_t               len;
	const int               yes = 1;
	scoped_fd               fd  = -1;

	if (!inet_address(host, port, &address, &len))
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
