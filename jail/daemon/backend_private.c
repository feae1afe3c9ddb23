/* backend_private.c - the server forks a launcher for each run */
#include "backend.h"

static int start(void *self, struct run *ret, const struct launch_args *o, int streams[PIPES_MAX], struct err *e)
{
	(void)streams;
	return exec_args_seal(o->exec_args, o->exec_text, e) < 0 ? -1 : run_start(ret, o, self, e);
}

static struct net_proxy *proxy(void *self, const struct served_profile *profile, int config)
{
	(void)profile;
	return net_proxy_later(self, config);
}

/* Nothing is built ahead. */
static void count(void *self, const struct served_profile *profile, struct backend_counts *ret)
{
	(void)self, (void)profile;
	*ret = (struct backend_counts){ 0 };
}

static pid_t monitor(void *self)
{
	(void)self;
	return 0;
}

static int lifeline(void *self)
{
	(void)self;
	return -1;
}

struct backend backend_private(const struct brig_paths *places)
{
	static const struct backend_ops ops = { .name = "private", .proxy = proxy, .start = start, .count = count, .monitor = monitor, .lifeline = lifeline };

	return (struct backend){ &ops, (void *)places };
}
