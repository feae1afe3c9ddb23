#include "net_proxy.h"

#include "fd.h"
#include "packet.h"

#include <stdlib.h>

struct net_proxy *net_proxy_open(int sock)
{
	scoped_fd         taken = sock;
	struct net_proxy *p     = calloc(1, sizeof *p);

	if (p)
		*p = (struct net_proxy){ .sock = fd_take(&taken), .holders = 1 };
	return p;
}

struct net_proxy *net_proxy_hold(struct net_proxy *p)
{
	p->holders++;
	return p;
}

void net_proxy_release(struct net_proxy *p)
{
	if (!p || --p->holders)
		return;
	fd_closep(&p->sock);
	free(p);
}

int net_proxy_say(struct net_proxy *p, const struct proxy_message *message, const int *fds, size_t n)
{
	return packet_offer(p->sock, message, sizeof *message, fds, n);
}

/* It says nothing, so all there can be is the end of the socket. */
bool net_proxy_is_gone(const struct net_proxy *p)
{
	return packet_is_there(p->sock);
}
