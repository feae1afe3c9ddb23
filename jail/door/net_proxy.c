#include "net_proxy.h"

#include "fd.h"
#include "libexec.h"
#include "packet.h"
#include "proxy_process.h"
#include "stderr_line.h"

#include <fcntl.h>
#include <stdlib.h>

struct net_proxy *net_proxy_open(int sock)
{
	scoped_fd         taken = sock;
	struct net_proxy *p     = calloc(1, sizeof *p);

	if (p)
		*p = (struct net_proxy){ .sock = fd_take(&taken), .holders = 1, .program = -1, .config = -1 };
	return p;
}

struct net_proxy *net_proxy_later(const struct places *places, int config)
{
	struct err        e;
	scoped_fd         program = libexec_open(places, PROXY_PROGRAM, &e), own = fcntl(config, F_DUPFD_CLOEXEC, 3);
	struct net_proxy *p       = program < 0 || own < 0 ? NULL : calloc(1, sizeof *p);

	if (p)
		*p = (struct net_proxy){ .sock = -1, .holders = 1, .places = places, .program = fd_take(&program), .config = fd_take(&own) };
	return p;
}

struct net_proxy *net_proxy_hold(struct net_proxy *p)
{
	p->holders++;
	return p;
}

void net_proxy_release(struct net_proxy *p)
{
	if (!p || --p->holders)
		return;
	fd_closep(&p->sock);
	fd_closep(&p->program);
	fd_closep(&p->config);
	free(p);
}

/* Tried once. If it fails, the log says why, and the program finds that nothing listens. */
static void start(struct net_proxy *p)
{
	struct err e;

	if (proxy_start(p->places, p->program, p->config, &p->sock, &e) < 0)
		stderr_line("brigd: %s\n", e.text);
	p->places = NULL;
	fd_closep(&p->program);
	fd_closep(&p->config);
}

int net_proxy_send(struct net_proxy *p, const struct proxy_message *message, const int *fds, size_t n)
{
	if (p->places)
		start(p);
	return packet_offer(p->sock, message, sizeof *message, fds, n);
}

/* brig-proxy sends nothing: if something can be received, it is end of file. */
bool net_proxy_is_gone(const struct net_proxy *p)
{
	return p->sock < 0 ? !p->places : packet_is_there(p->sock);
}
