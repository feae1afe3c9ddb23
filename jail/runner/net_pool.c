#define _GNU_SOURCE
#include "net_pool.h"

#include "fd.h"
#include "filter_notice.h"

#include <sched.h>
#include <string.h>

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

static struct net take_out(struct net_pool *p, size_t at)
{
	struct net found = p->kept[at].net;

	memmove(&p->kept[at], &p->kept[at + 1], (--p->n - at) * sizeof *p->kept);
	return found;
}

/* Takes the one that came back last: its memory is still in the caches. */
static struct net take_quiet(struct net_pool *p)
{
	for (size_t at = p->n; at-- > 0;)
		if (!p->kept[at].rests || net_is_quiet(&p->kept[at].net))
			return take_out(p, at);
	return NET_NONE;
}

struct net_place net_pool_take(struct net_pool *p)
{
	return (struct net_place){ .net = take_quiet(p), .host_fd = p->host_fd, .is_needless = p->is_needless };
}

/* Closes the oldest one that rests. False: none rests. */
static bool make_room(struct net_pool *p)
{
	size_t at = 0;

	while (at < p->n && !p->kept[at].rests)
		at++;
	if (at < p->n) {
		struct net oldest = take_out(p, at);

		net_close(&oldest);
	}
	return p->n < p->max;
}

void net_pool_give(struct net_pool *p, struct net *one)
{
	if (p->n < p->max || make_room(p))
		p->kept[p->n++] = (struct kept_net){ *one, !net_is_quiet(one) };
	else
		net_close(one);
	*one = NET_NONE;
}
