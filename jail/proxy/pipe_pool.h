/*
 * pipe_pool.h - pipes through which the kernel moves bytes from socket to socket
 *
 * A flow has a pipe only while its bytes wait inside: an idle connection costs no
 * descriptors for pipes. Only an empty pipe goes back into the pool.
 */
#pragma once
#include "defs.h"

enum { PIPE_POOL_KEPT = 32, PIPE_BYTES = 256 * 1024 };

struct pipe_pair {
	int in, out; /* the end to write, the end to read; -1: none */
};
#define PIPE_NONE ((struct pipe_pair){ -1, -1 })

struct pipe_pool {
	size_t           n;
	struct pipe_pair kept[PIPE_POOL_KEPT];
};

/* False: no descriptors are left. */
must_use bool pipe_pool_get(struct pipe_pool *pool, struct pipe_pair *ret);
void          pipe_pool_put(struct pipe_pool *pool, struct pipe_pair *pair, bool is_empty);
void          pipe_pool_close(struct pipe_pool *pool);
