#include "net_proxy.h"

#include "fd.h"
#include "libexec.h"
#include "packet.h"
#include "proxy_process.h"
#include "stderr_line.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

struct net_proxy *net_proxy_new(int sock)
{
	scoped_fd         taken = sock;
	struct net_proxy *p     = calloc(1, sizeof *p);

	if (p)
		*p = (struct net_proxy){ .sock = fd_take(&taken), .holders = 1, .program = -1, .config = -1 };
	return p;
}

struct net_proxy *net_proxy_new_unstarted(const struct brig_paths *places, int config)
{
	struct err        e;
	scoped_fd         program = libexec_open(places, PROXY_PROGRAM, &e);
	scoped_fd         own     = fcntl(config, F_DUPFD_CLOEXEC, 3);
	struct net_proxy *p       = program < 0 || own < 0 ? NULL : calloc(1, sizeof *p);

	if (p)
		*p = (struct net_proxy){ .sock    = -1,
					 .holders = 1,
					 .places  = places,
					 .program = fd_take(&program),
					 .config  = fd_take(&own) };
	return p;
}

struct net_proxy *net_proxy_hold(struct net_proxy *p)
{
	p->holders++;
	return p;
}

static void stop_waiting_for_writable(struct net_proxy *p)
{
	if (p->loop)
		loop_remove(p->loop, &p->source);
	p->loop = NULL;
}

void net_proxy_release(struct net_proxy *p)
{
	if (!p || --p->holders)
		return;
	stop_waiting_for_writable(p);
	fd_closep(&p->sock);
	fd_closep(&p->program);
	fd_closep(&p->config);
	free(p);
}

/*
 * The last one first: their order does not matter. Any error but a full socket: brig-proxy has ended, and with it the
 * sockets of all runs.
 */
static void send_ended_run_numbers(void *proxy)
{
	struct net_proxy    *p = proxy;
	struct proxy_message message;

	memset(&message, 0, sizeof message); /* padding too */
	message.kind = PROXY_END;
	while (p->ended_len) {
		int r;

		message.run = p->ended[p->ended_len - 1];
		r           = packet_send_nowait(p->sock, &message, sizeof message, NULL, 0);
		if (r == -EAGAIN)
			return;
		p->ended_len = r < 0 ? 0 : p->ended_len - 1;
	}
	stop_waiting_for_writable(p);
}

void net_proxy_send_ended_run(struct net_proxy *p, struct loop *loop, uint64_t run)
{
	struct err ignored;

	if (p->ended_len < ARRAY_LEN(p->ended))
		p->ended[p->ended_len++] = run;
	send_ended_run_numbers(p);
	if (!p->ended_len || p->loop)
		return;
	/* Without the loop, the numbers are sent when the next run begins or ends. */
	p->source = (struct loop_source){ p->sock, send_ended_run_numbers, p };
	if (loop_add_events(loop, &p->source, EPOLLOUT, &ignored) == 0)
		p->loop = loop;
}

int net_proxy_send_new_run(struct net_proxy *p, const struct proxy_message *message, const int *fds, size_t n)
{
	struct err e;

	/* Started once. If that fails, the log shows why, and the program finds that nothing listens. */
	if (p->places) {
		if (proxy_process_start(p->places, p->program, p->config, &p->sock, &e) < 0)
			stderr_print_line("brigd: %s\n", e.text);
		p->places = NULL;
		fd_closep(&p->program);
		fd_closep(&p->config);
	}
	send_ended_run_numbers(p);
	return p->ended_len ? -EAGAIN : packet_send_nowait(p->sock, message, sizeof *message, fds, n);
}

/* brig-proxy sends nothing: if something can be received, it is end of file. */
bool net_proxy_is_gone(const struct net_proxy *p)
{
	return p->sock < 0 ? !p->places : packet_is_readable(p->sock);
}
