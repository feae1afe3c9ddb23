#define _GNU_SOURCE
#include "notify.h"

#include "fd.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int systemd_notify_open(int *ret, struct err *e)
{
	const char        *path = secure_getenv("NOTIFY_SOCKET");
	struct sockaddr_un to   = { .sun_family = AF_UNIX };
	size_t             len  = path ? strlen(path) : 0;

	*ret = -1;
	if (len == 0)
		return 0;
	if ((path[0] != '/' && path[0] != '@') || len >= sizeof to.sun_path)
		return err_set(e, ERR_BAD_SPEC, "NOTIFY_SOCKET: \"%.60s\" is not the name of a socket", path);
	memcpy(to.sun_path, path, len);
	if (path[0] == '@')
		to.sun_path[0] = 0; /* an abstract name */
	scoped_fd sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (sock < 0 || connect(sock, (const void *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
		return err_sys(e, "NOTIFY_SOCKET %s", path);
	*ret = fd_take(&sock);
	return 0;
}

void systemd_notify_send(int sock, const char *words)
{
	if (sock >= 0)
		(void)!send(sock, words, strlen(words), MSG_NOSIGNAL);
}
