#define _GNU_SOURCE
#include "net_pool.h"

#include "fd.h"
#include "filter_notice.h"

#include <sched.h>
#include <string.h>

int net_pool_open(struct net_pool *p, bool keeps, struct sock_fprog *filter, struct err *e)
{
	enum network_notice notice =
		keeps ? network_notice_add(filter->filter, filter->len) : NETWORK_NOTICE_IMPOSSIBLE;

	*p = (struct net_pool){ .max         = notice == NETWORK_NOTICE_IMPOSSIBLE ? 0 : NET_POOL_MAX,
				.is_needless = notice == NETWORK_NOTICE_NEEDLESS };
	if (unshare(CLONE_NEWNET) < 0)
		return err_sys(e, "networks to use again: unshare");
	p->host_fd = net_open_own_ns();
	return p->host_fd < 0 ? err_sys(e, "networks to use again: /proc/self/ns/net") : 0;
}

static struct net remove_kept_net(struct net_pool *p, size_t at)
{
	struct net found = p->kept[at].net;

	memmove(&p->kept[at], &p->kept[at + 1], (--p->n - at) * sizeof *p->kept);
	return found;
}

/* Takes the one that came back last: its memory is still in the caches. */
struct net_place net_pool_take_net(struct net_pool *p)
{
	struct net_place ret = { .net = NET_NONE, .host_fd = p->host_fd, .is_needless = p->is_needless };
	size_t           at  = p->n;

	while (at > 0 && p->kept[at - 1].rests && !net_is_unused(&p->kept[at - 1].net))
		at--;
	if (at > 0)
		ret.net = remove_kept_net(p, at - 1);
	return ret;
}

/* A full pool closes the oldest one that rests. */
void net_pool_return_net(struct net_pool *p, struct net *one)
{
	size_t at = 0;

	while (at < p->n && !p->kept[at].rests)
		at++;
	if (p->n == p->max && at < p->n) {
		struct net oldest = remove_kept_net(p, at);

		net_close(&oldest);
	}
	if (p->n < p->max)
		p->kept[p->n++] = (struct kept_net){ *one, !net_is_unused(one) };
	else
		net_close(one);
	*one = NET_NONE;
}
