#define _GNU_SOURCE
#include "proxy.h"

#include "proxy_confine.h"
#include "fd.h"
#include "own_address.h"
#include "packet.h"
#include "proxy_config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

/* --- messages of the server --- */

/* -1: not a message of this protocol. */
static int handle_message(struct proxy *proxy, const struct proxy_message *m, int fds[3], size_t n, struct err *e)
{
	struct run *run;
	struct err  why;

	LIST_FOREACH(run, &proxy->runs, link)
	if (run->number == m->run)
		break;
	if (m->kind == PROXY_BEGIN && n == 3 && !run) {
		/* A run that cannot be served gets no listeners: its programs are refused at once, and other runs go
		 * on. */
		if (proxied_run_start(proxy, m, fds, &why) < 0)
			fprintf(stderr, "brig-proxy: a run has no network: %s\n", why.text);
		return 0;
	}
	packet_close_fds(fds, n);
	if (m->kind != PROXY_END || n != 0)
		return err_set(e, ERR_BROKEN,
			       "the server sent a message that is none of its protocol: kind %u for %s run, %" PRIu64
			       ", with %zu descriptors",
			       m->kind, run ? "the" : "a new", m->run, n);
	if (run)
		proxied_run_end_and_free(run);
	return 0;
}

/* 1: go on. 0: the server is gone. -1: it broke the protocol, or its socket failed. */
static int receive_message(struct proxy *proxy, struct err *e)
{
	struct proxy_message m;
	int                  fds[3];
	size_t               n = 0;
	ssize_t              r = packet_receive(PROXY_FD, &m, sizeof m, fds, ARRAY_LEN(fds), &n);

	if (r == sizeof m)
		return handle_message(proxy, &m, fds, n, e) < 0 ? -1 : 1;
	if (r > 0)
		packet_close_fds(fds, n);
	if (r > 0 || (r < 0 && errno == EMSGSIZE))
		return err_set(e, ERR_BROKEN, "the server sent a message of another size, or with more descriptors, "
			       "than its protocol has");
	if (r < 0)
		return errno == EAGAIN ? 1 : err_sys(e, "the server's socket");
	return 0;
}

static void on_server_message(void *owner)
{
	struct proxy *proxy = owner;
	int           r     = receive_message(proxy, &proxy->why);

	proxy->ends  = r <= 0;
	proxy->fails = r < 0;
}

/* --- from the beginning to the end --- */

static void raise_descriptor_limit(struct proxy *proxy)
{
	struct rlimit limit = { 0 };

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
		(void)getrlimit(RLIMIT_NOFILE, &limit);
	}
	proxy->descriptors = limit.rlim_cur;
}

static int proxy_set_up(struct proxy *proxy, struct err *e)
{
	proxy->config = proxy_config_map(PROXY_CONFIG_FD, e);
	if (!proxy->config || loop_open(&proxy->loop, e) < 0)
		return -1;
	close(PROXY_CONFIG_FD);
	raise_descriptor_limit(proxy);
	deadlines_init(&proxy->deadlines, &proxy->loop);
	proxy->kernel = own_address_open_netlink(e);
	if (proxy->kernel < 0)
		return -1;
	if (proxy->config->has_ca && !(proxy->authority = tls_authority_create(proxy->config, e)))
		return -1;
	proxy->server = (struct loop_source){ PROXY_FD, on_server_message, proxy };
	return loop_add(&proxy->loop, &proxy->server, e);
}

static void proxy_tear_down(struct proxy *proxy)
{
	while (!LIST_EMPTY(&proxy->runs))
		proxied_run_end_and_free(LIST_FIRST(&proxy->runs));
	tls_authority_destroy(proxy->authority);
	pipe_pool_close(&proxy->pipes);
	fd_closep(&proxy->kernel);
	loop_close(&proxy->loop);
}

int proxy_serve(struct proxy *proxy, struct err *e)
{
	int r;

	LIST_INIT(&proxy->runs);
	proxy->kernel  = -1;
	proxy->loop.fd = -1;
	(void)signal(SIGPIPE, SIG_IGN); /* splice() has no MSG_NOSIGNAL */
	r = proxy_set_up(proxy, e);
	if (r == 0)
		r = proxy_confine(e);
	while (r == 0 && !proxy->ends)
		r = loop_turn(&proxy->loop, -1, e) < 0 ? -1 : 0;
	if (proxy->fails) {
		*e = proxy->why;
		r  = -1;
	}
	if (proxy->loop.fd >= 0)
		proxy_tear_down(proxy);
	return r;
}
