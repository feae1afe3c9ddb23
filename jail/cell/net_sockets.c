#define _GNU_SOURCE
#include "net_sockets.h"

#include "fd.h"
#include "packet.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

/* Connections that wait to be accepted, of one port; and bytes of questions that wait to be answered. */
enum { BACKLOG = 128, QUESTIONS = 64 * 1024 };

/*
 * What is accepted inherits it. Where the host's own is BBR, a program got HTTPS at half of the rate at which it came to brig-proxy: pacing
 * is for a path, and there is none between two sockets of one network namespace. Each kernel has Reno, and everybody may ask for it.
 */
static void send_unpaced(int fd)
{
	(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", sizeof "reno" - 1);
}

static int open_one(struct net_sockets *s, int type, uint32_t address, uint16_t port, struct err *e)
{
	struct sockaddr_in at   = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address) };
	int                room = QUESTIONS;
	scoped_fd          fd   = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0)
		return err_sys(e, "set-up step net-namespace: port %u", port);
	if (type == SOCK_STREAM)
		send_unpaced(fd);
	if ((type == SOCK_DGRAM ? setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room) : listen(fd, BACKLOG)) < 0)
		return err_sys(e, "set-up step net-namespace: port %u", port);
	s->fd[s->n++] = fd_take(&fd);
	return 0;
}

static int open_all(struct net_sockets *s, struct err *e)
{
	if (open_one(s, SOCK_DGRAM, NET_GATEWAY, NET_DNS_PORT, e) < 0 || open_one(s, SOCK_STREAM, NET_GATEWAY, NET_DNS_PORT, e) < 0 ||
	    open_one(s, SOCK_STREAM, NET_GATEWAY, NET_PROXY_PORT, e) < 0)
		return -1;
	for (uint32_t i = 0; i < s->what.ports; i++)
		if (open_one(s, SOCK_STREAM, INADDR_ANY, s->what.port[i], e) < 0)
			return -1;
	return 0;
}

int net_sockets_open(const struct net_listeners *what, struct net_sockets *ret, struct err *e)
{
	*ret = (struct net_sockets){ .what = *what };
	if (!net_listeners_are_sound(what))
		return err_set(e, ERR_BROKEN, "set-up step net-namespace: ports that cannot be listened at");
	if (open_all(ret, e) == 0)
		return 0;
	net_sockets_close(ret);
	return -1;
}

void net_sockets_give(struct net_sockets *s, int sock)
{
	struct net_listeners what;

	memset(&what, 0, sizeof what); /* padding too */
	what.ports = s->what.ports;
	memcpy(what.port, s->what.port, sizeof what.port);
	if (s->n)
		(void)packet_offer(sock, &what, sizeof what, s->fd, s->n);
	net_sockets_close(s);
}

void net_sockets_close(struct net_sockets *s)
{
	while (s->n)
		fd_closep(&s->fd[--s->n]);
}
