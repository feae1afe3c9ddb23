/* backend_private.c - the door forks a launcher for each run */
#include "backend.h"


static int start(void *self, struct run *ret, const struct backend_order *o, int streams[PIPES_MAX], struct err *e)
{
	const struct places  *places  = self;
	const struct profile *profile = &o->profile->profile;
	struct run_order      order   = {
		.limits         = o->limits,
		.exec_args      = o->exec_args,
		.code_fd        = o->code_fd,
		.code_len       = o->code_len,
		.mounts         = o->mounts,
		.shown_fd       = o->shown_fd,
		.shown_len      = o->shown_len,
		.files_fd       = o->files_fd,
		.tools_fd       = o->tools_fd,
		.listeners      = o->listeners,
		.trust_fd       = o->trust_fd,
		.stdin_pipe     = o->stdin_pipe,
		.result_pipe    = o->result_pipe,
		.workspace_exec = profile->workspace_exec,
		.require_all    = profile->require == REQUIRE_ALL,
		.store          = { places->store[0], places->store[1] },
		.rootfs         = profile->rootfs,
		.runtime_dir    = places->runtime,
		.policy         = &o->profile->policy,
	};

	(void)streams;
	return exec_args_seal(o->exec_args, o->exec_text, e) < 0 ? -1 : run_start(ret, &order, e);
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

static pid_t keeper(void *self)
{
	(void)self;
	return 0;
}

static int lifeline(void *self)
{
	(void)self;
	return -1;
}

struct backend backend_private(const struct places *places)
{
	static const struct backend_ops ops = { .name = "private", .proxy = proxy, .start = start, .count = count, .keeper = keeper, .lifeline = lifeline };

	return (struct backend){ &ops, (void *)places };
}
