#define _GNU_SOURCE
#include "net_pool.h"

#include "fd.h"
#include "filter_notice.h"

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

static int open_home(struct net_pool *p, struct err *e)
{
	if (unshare(CLONE_NEWNET) < 0)
		return err_sys(e, "networks to use again: unshare");
	p->home_fd = net_open_own();
	if (p->home_fd < 0)
		return err_sys(e, "networks to use again: /proc/self/ns/net");
	return 0;
}

int net_pool_open(struct net_pool *p, struct sock_fprog *filter, struct err *e)
{
	enum network_notice notice = network_notice_add(filter->filter, filter->len);

	*p = NET_POOL_NONE;
	if (notice == NETWORK_NOTICE_IMPOSSIBLE)
		return 0;
	p->is_needless = notice == NETWORK_NOTICE_NEEDLESS;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p->back) < 0)
		return err_sys(e, "networks to use again: socketpair");
	return open_home(p, e);
}

/* The one that came last: its memory is warm. */
struct net_place net_pool_place(const struct net_pool *p)
{
	return (struct net_place){
		.net = p->n ? p->net[p->n - 1] : NET_NONE, .home_fd = p->home_fd, .keeper_fd = p->back[1], .is_needless = p->is_needless,
	};
}

void net_pool_taken(struct net_pool *p)
{
	if (p->n)
		net_close(&p->net[--p->n]);
}

void net_pool_forget(const struct net_pool *p)
{
	for (size_t i = 0; i + 1 < p->n; i++) {
		struct net other = p->net[i];

		net_close(&other);
	}
	if (p->back[0] >= 0)
		close(p->back[0]);
}

int net_pool_fd(const struct net_pool *p)
{
	return p->back[0];
}

void net_pool_hear(struct net_pool *p)
{
	struct net one;

	if (!net_receive(&one, p->back[0]))
		return;
	if (p->n < NET_POOL_MAX)
		p->net[p->n++] = one;
	else
		net_close(&one);
}
