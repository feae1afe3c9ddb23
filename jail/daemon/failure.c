#define _GNU_SOURCE
#include "failure.h"

#include "client_protocol.h"
#include "fd.h"
#include "packet.h"
#include "unavailable.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS_MAX = 256 }; /* of brigd.socket's Backlog= */

int failure_open_file(const struct brig_paths *p, bool is_host)
{
	char path[PATH_SIZE + 16];

	if (is_host)
		return open(PLACE_FAILURE, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW); /* tmpfiles.d made it */
	snprintf(path, sizeof path, "%s/failure", p->runtime);
	return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static void send_failure_to_clients(int listener, const struct err *e)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };
	char          request[PROTOCOL_MAX];
	int           fds[PROTOCOL_FDS_MAX];
	size_t        n;

	for (int i = 0; i < CLIENTS_MAX && poll(&p, 1, 0) > 0; i++) {
		scoped_fd sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (sock < 0)
			return;
		unavailable_send_error(sock, e);
		/*
		 * The request is read before the socket is closed: to close it with unread data resets the connection,
		 * and the answer is lost.
		 */
		n = 0;
		if (packet_is_readable(sock) &&
		    packet_receive(sock, request, sizeof request, fds, ARRAY_LEN(fds), &n) >= 0)
			packet_close_fds(fds, n);
	}
}

void failure_report(int file, const struct listener *l, const struct err *e)
{
	if (file >= 0)
		(void)!write(file, e->text, strlen(e->text));
	if (l && l->fd >= 0 && !*l->path)
		send_failure_to_clients(l->fd, e);
}
