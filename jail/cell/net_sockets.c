#define _GNU_SOURCE
#include "net_sockets.h"

#include "fd.h"
#include "packet.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* Connections of one port that wait to be accepted; bytes of DNS questions that wait to be read. */
enum { BACKLOG = 128, QUESTIONS = 64 * 1024 };

/*
 * Accepted connections inherit the congestion control. Where the host's default is BBR, a program received HTTPS at
 * half the rate at which brig-proxy did: BBR paces for a path, and between two sockets of one namespace there is no
 * path. Every kernel has Reno, and any process may set it.
 */
static void set_reno_congestion_control(int fd)
{
	(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", sizeof "reno" - 1);
}

static int open_bound_socket(struct net_sockets *s, int type, uint32_t address, uint16_t port, struct err *e)
{
	struct sockaddr_in at   = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address) };
	int                bytes = QUESTIONS, r;
	scoped_fd          fd   = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0)
		return err_sys(e, "set-up step net-namespace: port %u", port);
	if (type == SOCK_STREAM)
		set_reno_congestion_control(fd);
	r = type == SOCK_DGRAM ? setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) : listen(fd, BACKLOG);
	if (r < 0)
		return err_sys(e, "set-up step net-namespace: port %u", port);
	s->fd[s->n++] = fd_take(&fd);
	return 0;
}

/* -1 if that fails: fs.epoll.max_user_watches may be used up by other processes of the same user. */
static int open_sockets_epoll(const struct net_sockets *s)
{
	struct epoll_event can_be_read = { .events = EPOLLIN };
	scoped_fd          fd          = epoll_create1(EPOLL_CLOEXEC);

	for (uint32_t i = 0; fd >= 0 && i < s->n; i++)
		if (epoll_ctl(fd, EPOLL_CTL_ADD, s->fd[i], &can_be_read) < 0)
			return -1;
	return fd_take(&fd);
}

int net_sockets_open(const struct net_listeners *what, struct net_sockets *ret, struct err *e)
{
	int r;

	*ret      = NET_SOCKETS_NONE;
	ret->what = *what;
	if (!net_listeners_are_sound(what))
		return err_set(e, ERR_BROKEN, "set-up step net-namespace: ports that cannot be listened at");
	r = open_bound_socket(ret, SOCK_DGRAM, NET_GATEWAY, NET_DNS_PORT, e);
	if (r == 0)
		r = open_bound_socket(ret, SOCK_STREAM, NET_GATEWAY, NET_DNS_PORT, e);
	if (r == 0)
		r = open_bound_socket(ret, SOCK_STREAM, NET_GATEWAY, NET_PROXY_PORT, e);
	for (uint32_t i = 0; r == 0 && i < what->ports; i++)
		r = open_bound_socket(ret, SOCK_STREAM, INADDR_ANY, what->port[i], e);
	if (r == 0)
		ret->used_fd = open_sockets_epoll(ret);
	else
		net_sockets_close(ret);
	return r;
}

void net_sockets_set_receiver(struct net_sockets *s, int sock)
{
	fd_closep(&s->to);
	s->to = sock;
	if (packet_is_readable(sock)) /* the other end sends nothing, so this is end of file: the run may reach nothing */
		net_sockets_close(s);
	else if (s->used_fd < 0)
		net_sockets_send(s); /* if there are none (any more), the other end gets end of file; if there is no epoll, they are sent unused */
}

void net_sockets_send(struct net_sockets *s)
{
	struct net_listeners what;

	memset(&what, 0, sizeof what); /* padding too */
	what.ports = s->what.ports;
	memcpy(what.port, s->what.port, sizeof what.port);
	if (s->n && packet_send_nowait(s->to, &what, sizeof what, s->fd, s->n) < 0)
		/* No struct net_listeners: the other end learns that they were used, but could not be sent. */
		(void)packet_send_nowait(s->to, "", 1, NULL, 0);
	net_sockets_close(s);
}

void net_sockets_close(struct net_sockets *s)
{
	fd_closep(&s->used_fd);
	fd_closep(&s->to);
	while (s->n)
		fd_closep(&s->fd[--s->n]);
}
