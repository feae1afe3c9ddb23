#define _GNU_SOURCE
#include "net.h"

#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sched.h>

static void socket_freep(struct nl_sock **sock)
{
	nl_socket_free(*sock);
}

/* The one request that is needed: the core of libnl does it, its route library would only add start-up time. */
static int raise_loopback(struct err *e)
{
	scoped(socket_freep) struct nl_sock *sock = nl_socket_alloc();
	struct ifinfomsg lo = { .ifi_family = AF_UNSPEC, .ifi_index = 1, .ifi_flags = IFF_UP, .ifi_change = IFF_UP };
	int r;

	if (!sock)
		return err_set(e, ERR_LIMIT, "lo: out of memory");
	r = nl_connect(sock, NETLINK_ROUTE);
	if (r == 0)
		r = nl_send_simple(sock, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, &lo, sizeof lo);
	if (r >= 0)
		r = nl_wait_for_ack(sock);
	return r < 0 ? err_set(e, ERR_SETUP, "set-up step net-namespace: lo up: %s", nl_geterror(r)) : 0;
}

static int make_namespace(struct net_job *job)
{
	if (unshare(CLONE_NEWNET) < 0) /* of this thread alone */
		return err_sys(&job->err, "set-up step net-namespace");
	if (raise_loopback(&job->err) < 0)
		return -1;
	job->fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	return job->fd < 0 ? err_sys(&job->err, "set-up step net-namespace: /proc/thread-self/ns/net") : 0;
}

static void *thread_main(void *job)
{
	(void)!make_namespace(job);
	return NULL;
}

int net_job_start(struct net_job *job, struct err *e)
{
	*job  = NET_JOB_NONE;
	errno = pthread_create(&job->thread, NULL, thread_main, job);
	if (errno)
		return err_sys(e, "set-up step net-namespace: thread");
	job->running = true;
	return 0;
}

static void join(struct net_job *job)
{
	if (job->running)
		pthread_join(job->thread, NULL);
	job->running = false;
}

int net_job_enter(struct net_job *job, struct err *e)
{
	join(job);
	if (job->fd < 0) {
		*e = job->err;
		return -1;
	}
	return setns(job->fd, CLONE_NEWNET) < 0 ? err_sys(e, "set-up step net-namespace: enter") : 0;
}

void net_job_done(struct net_job *job)
{
	join(job);
	fd_closep(&job->fd);
}
