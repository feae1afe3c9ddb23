#define _GNU_SOURCE
#include "pipe_pool.h"

#include "fd.h"

#include <fcntl.h>

bool pipe_pool_get(struct pipe_pool *pool, struct pipe_pair *ret)
{
	int fds[2];

	if (pool->n) {
		*ret = pool->kept[--pool->n];
		return true;
	}
	if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) < 0)
		return false;
	*ret = (struct pipe_pair){ .in = fds[1], .out = fds[0] };
	/* EPERM when the user has many pipes: then this one stays small */
	(void)fcntl(fds[1], F_SETPIPE_SZ, PIPE_BYTES);
	return true;
}

void pipe_pool_put(struct pipe_pool *pool, struct pipe_pair *pair, bool is_empty)
{
	if (pair->in >= 0 && is_empty && pool->n < PIPE_POOL_KEPT) {
		pool->kept[pool->n++] = *pair;
	} else {
		fd_closep(&pair->in);
		fd_closep(&pair->out);
	}
	*pair = PIPE_NONE;
}

void pipe_pool_close(struct pipe_pool *pool)
{
	while (pool->n) {
		struct pipe_pair *pair = &pool->kept[--pool->n];

		fd_closep(&pair->in);
		fd_closep(&pair->out);
	}
}
