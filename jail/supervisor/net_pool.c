#define _GNU_SOURCE
#include "net_pool.h"

#include "fd.h"
#include "filter_notice.h"

#include <sched.h>

static int open_own(struct net_pool *p, struct err *e)
{
	if (unshare(CLONE_NEWNET) < 0)
		return err_sys(e, "networks to use again: unshare");
	p->host_fd = net_open_own();
	if (p->host_fd < 0)
		return err_sys(e, "networks to use again: /proc/self/ns/net");
	return 0;
}

int net_pool_open(struct net_pool *p, bool keeps, struct sock_fprog *filter, struct err *e)
{
	enum network_notice notice = keeps ? network_notice_add(filter->filter, filter->len) : NETWORK_NOTICE_IMPOSSIBLE;

	*p = (struct net_pool){ .max = notice == NETWORK_NOTICE_IMPOSSIBLE ? 0 : NET_POOL_MAX, .is_needless = notice == NETWORK_NOTICE_NEEDLESS };
	return open_own(p, e);
}

/* The one that came last: its memory is warm. */
struct net_place net_pool_take(struct net_pool *p)
{
	return (struct net_place){ .net         = p->n ? p->net[--p->n] : NET_NONE,
				   .host_fd     = p->host_fd,
				   .is_needless = p->is_needless };
}

void net_pool_give(struct net_pool *p, struct net *one)
{
	if (p->n == p->max)
		net_close(one);
	else
		p->net[p->n++] = *one;
	*one = NET_NONE;
}
