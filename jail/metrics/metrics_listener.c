#define _GNU_SOURCE
#include "metrics_listener.h"

#include "fd.h"
#include "inet.h"
#include "text.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { BACKLOG = 128, HOST_MAX = INET6_ADDRSTRLEN + 2 };

/* --- a port --- */

static int refuse_listen_address(const char *at, struct err *e)
{
	return err_set(e, ERR_BAD_SPEC,
		       "--listen %.100s: expected an address with a port, as 127.0.0.1:9464 or [::1]:9464, "
		       "or the absolute path of a socket",
		       at);
}

/*
 * "[::1]:9464": an IPv6 address is in brackets, as in a URL, so that its colons are not taken for the one before the
 * port.
 */
static int parse_listen_address(const char *at, char host[HOST_MAX], uint64_t *port, struct err *e)
{
	const char *colon = strrchr(at, ':');
	size_t      len   = colon ? (size_t)(colon - at) : 0;
	bool        six   = len > 2 && at[0] == '[' && at[len - 1] == ']';

	if (!len || len >= HOST_MAX || text_to_u64(colon + 1, port) < 0 || *port > UINT16_MAX)
		return refuse_listen_address(at, e);
	snprintf(host, HOST_MAX, "%.*s", (int)(len - 2 * six), at + six);
	return !six == !strchr(host, ':') ? 0 : refuse_listen_address(at, e);
}

static int listener_open_port(struct metrics_listener *l, const char *at, struct err *e)
{
	char     host[HOST_MAX];
	uint64_t port = 0;

	if (parse_listen_address(at, host, &port, e) < 0)
		return -1;
	l->fd = inet_listen(host, port, e);
	if (l->fd < 0)
		return err_wrap(e, "--listen %.100s", at);
	inet_format_url(l->fd, "/metrics", l->name, sizeof l->name, host);
	return 0;
}

/* --- a socket of the file system --- */

/* Removes a socket that no process listens on; refuses anything else. */
static int remove_stale_socket(const struct sockaddr_un *at, struct err *e)
{
	scoped_fd   sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (lstat(at->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "--listen %s", at->sun_path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(e, ERR_BAD_SPEC, "--listen %s: is not a socket; it was not changed", at->sun_path);
	if (sock < 0 || connect(sock, (const void *)at, sizeof *at) == 0 || errno != ECONNREFUSED)
		return err_set(e, ERR_LIMIT, "--listen %s: another process already listens there", at->sun_path);
	return unlink(at->sun_path) < 0 ? err_sys(e, "--listen %s", at->sun_path) : 0;
}

static int listener_open_path(struct metrics_listener *l, const char *path, struct err *e)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof at.sun_path)
		return err_set(e, ERR_BAD_SPEC, "--listen %.60s...: a socket's path has at most %zu bytes", path,
			       sizeof at.sun_path - 1);
	strcpy(at.sun_path, path);
	if (remove_stale_socket(&at, e) < 0)
		return -1;
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0 || bind(l->fd, (const void *)&at, sizeof at) < 0)
		return err_sys(e, "--listen %s", path);
	strcpy(l->path, path);
	snprintf(l->name, sizeof l->name, "/metrics at the socket %s", path);
	return listen(l->fd, BACKLOG) < 0 ? err_sys(e, "--listen %s", path) : 0;
}

int metrics_listener_open(struct metrics_listener *ret, const char *at, struct err *e)
{
	*ret = METRICS_LISTENER_NONE;
	if ((*at == '/' ? listener_open_path(ret, at, e) : listener_open_port(ret, at, e)) == 0)
		return 0;
	metrics_listener_close(ret);
	return -1;
}

void metrics_listener_close(struct metrics_listener *l)
{
	fd_closep(&l->fd);
	if (*l->path)
		unlink(l->path);
	*l->path = 0;
}
