/*
 * proxy.h - brig-proxy: one loop, its configuration, and the runs that it serves
 *
 * It parses what programs in jails and servers on the Internet send, and holds secrets: its only right on the host is
 * to connect. It is one thread, and only the loop waits.
 */
#pragma once
#include "deadline.h"
#include "pipe_pool.h"
#include "proxy_run.h"

enum { PROXY_SCRATCH = 64 * 1024 };

struct proxy {
	struct loop                loop;
	struct loop_source         server;
	const struct proxy_config *config; /* a mapping */
	struct deadlines           deadlines;
	struct tls_authority      *authority; /* NULL: no TLS is terminated */
	int                        kernel;    /* netlink socket, own_address.h */
	struct pipe_pool           pipes;
	uint64_t                   descriptors;  /* RLIMIT_NOFILE */
	uint64_t                   serves, open; /* runs; connections of all of them */
	LIST_HEAD(, run) runs;
	bool       ends, fails;
	struct err why; /* if fails */
	char scratch[PROXY_SCRATCH]; /* within one call: nothing stays in it */
};

/* Opens what it needs, confines itself, serves, and returns at the end of file of PROXY_FD: 0, or -1 with *e. */
must_use int proxy_serve(struct proxy *proxy, struct err *e);
