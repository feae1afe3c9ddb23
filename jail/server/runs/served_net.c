#define _GNU_SOURCE
#include "served_net.h"

#include "fd.h"
#include "sealed.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static void served_net_set_state(struct served_net *n, enum served_net_state to)
{
	switch (n->state) {
	case SERVED_NET_NOT_ASKED_FOR:
		assert(to == SERVED_NET_AWAITS_USE || to == SERVED_NET_LOST);
		break;
	case SERVED_NET_AWAITS_USE:
		assert(to == SERVED_NET_UNUSED || to == SERVED_NET_IN_PROXY || to == SERVED_NET_LOST);
		break;
	case SERVED_NET_IN_PROXY: /* brig-proxy has ended */
	case SERVED_NET_LOST:
		assert(to == SERVED_NET_LOSS_REPORTED);
		break;
	case SERVED_NET_UNUSED:
	case SERVED_NET_LOSS_REPORTED:
		assert(!"the last state of a network");
	}
	n->state = to;
}

/* sock: brig-proxy receives the listening sockets from it. */
static int send_run_to_proxy(const struct served_net *n, int sock)
{
	struct err           ignored;
	scoped_fd            rules = sealed_create("brig-rules", n->rules, net_rules_size(n->rules), &ignored);
	struct proxy_message message;
	int                  fds[] = { sock, rules, n->report };

	if (rules < 0)
		return -1;
	memset(&message, 0, sizeof message); /* padding too */
	message.kind            = PROXY_BEGIN;
	message.run             = n->number;
	message.bytes_max       = n->limits->net_bytes;
	message.connections_max = n->limits->net_connections;
	message.cpus            = n->limits->cpus;
	message.user            = n->user;
	message.rate_max        = n->limits->net_rate < limits_fields[LIMIT_net_rate].max ? n->limits->net_rate : 0;
	return net_proxy_send_new_run(n->proxy, &message, fds, ARRAY_LEN(fds));
}

/* To close the source also closes the listening sockets in a message that was not received. */
static void close_listener_source(struct served_net *n)
{
	if (n->source.fd >= 0)
		loop_remove(n->loop, &n->source);
	fd_closep(&n->source.fd);
	free(n->rules);
	n->rules = NULL;
}

/* The program has used its network, or its cell is gone. */
static void served_net_on_listeners(void *owner)
{
	struct served_net *n = owner;
	struct err         ignored;
	char               byte;
	ssize_t            len = recv(n->source.fd, &byte, 1, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
	bool               is_lost;

	if (len > 0) {
		/* its size never changes: a process that reads it, or has it mapped, cannot run into a new end */
		n->report = sealed_create_fixed_size("brig-network", sizeof(struct net_report), &ignored);
		is_lost   = len != sizeof(struct net_listeners) || n->report < 0 || net_proxy_is_gone(n->proxy) ||
			  send_run_to_proxy(n, n->source.fd) < 0;
		if (is_lost)
			fd_closep(&n->report);
		served_net_set_state(n, is_lost ? SERVED_NET_LOST : SERVED_NET_IN_PROXY);
	} else {
		served_net_set_state(n, SERVED_NET_UNUSED);
	}
	close_listener_source(n);
}

/* False: there is no brig-proxy, or the loop is full. */
static bool add_listeners_source(struct served_net *n, int sock)
{
	struct err ignored;

	if (!n->proxy || net_proxy_is_gone(n->proxy))
		return false;
	n->source = (struct loop_source){ sock, served_net_on_listeners, n };
	if (loop_add(n->loop, &n->source, &ignored) == 0)
		return true;
	n->source.fd = -1;
	return false;
}

/*
 * The listening sockets of a cell are asked for in any case. If the server has closed its end, the process that watches
 * the run closes them, so that a program that may reach nothing, or has no brig-proxy, is refused at once.
 */
void served_net_start(struct served_net *ret, struct loop *loop, const struct backend *backend, const struct run *run,
		      const struct served_net_request *request)
{
	int  pair[2];
	bool has_pair = request->has_listeners && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0;

	*ret        = SERVED_NET_NONE;
	ret->number = request->number;
	ret->user   = request->user;
	ret->loop   = loop;
	ret->limits = request->limits;
	ret->rules  = request->rules;
	if (request->rules && has_pair)
		ret->proxy = backend->proxy(backend->self, request->profile, request->config);
	if (request->rules)
		served_net_set_state(ret, has_pair && add_listeners_source(ret, pair[0]) ? SERVED_NET_AWAITS_USE
										       : SERVED_NET_LOST);
	if (!has_pair)
		return;
	if (ret->source.fd < 0)
		close(pair[0]); /* first: the other process looks whether this end is open */
	run_request_network_sockets(run, pair[1]);
	close(pair[1]);
}

bool served_net_was_asked_for(const struct served_net *n)
{
	return n->state != SERVED_NET_NOT_ASKED_FOR;
}

/* So that a record shows why a program reached nothing. */
static void net_report_add_lost_proxy(struct net_report *r)
{
	struct net_connection *c = &r->connection[r->n < NET_REPORT_MAX ? r->n++ : NET_REPORT_MAX - 1];

	*c = (struct net_connection){ .verdict = NET_VERDICT_FAILED, .reason = NET_REASON_PROXY_GONE };
	r->connections++;
	r->failed++;
}

/* False: none was open. */
static bool net_report_fail_open_connections(struct net_report *r)
{
	bool any = false;

	for (uint32_t i = 0; i < r->n; i++)
		if (r->connection[i].verdict == NET_VERDICT_OPEN) {
			r->connection[i].verdict = NET_VERDICT_FAILED;
			r->connection[i].reason  = NET_REASON_PROXY_GONE;
			r->failed++;
			any = true;
		}
	return any;
}

void served_net_mark_over(const struct served_net *n)
{
	uint32_t over = 1;

	if (n->report >= 0)
		(void)!pwritev(n->report, &(struct iovec){ &over, sizeof over }, 1, offsetof(struct net_report, over));
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* net_report.h: before anything is read */
}

static void read_net_report(const struct served_net *n, struct net_report *ret)
{
	memset(ret, 0, sizeof *ret);
	if (n->report >= 0 && pread(n->report, ret, sizeof *ret, 0) != sizeof *ret)
		memset(ret, 0, sizeof *ret);
	net_report_sanitize(ret);
}

static bool proxy_is_lost(const struct served_net *n)
{
	switch (n->state) {
	case SERVED_NET_NOT_ASKED_FOR:
	case SERVED_NET_AWAITS_USE:
	case SERVED_NET_UNUSED:
		return false;
	case SERVED_NET_IN_PROXY:
		return net_proxy_is_gone(n->proxy);
	case SERVED_NET_LOST:
	case SERVED_NET_LOSS_REPORTED:
		return true;
	}
	return true;
}

void served_net_read_report(const struct served_net *n, struct net_report *ret)
{
	read_net_report(n, ret);
	if (proxy_is_lost(n) && !net_report_fail_open_connections(ret))
		net_report_add_lost_proxy(ret);
}

void served_net_release(struct served_net *n)
{
	close_listener_source(n);
	if (n->proxy && n->report >= 0)
		net_proxy_send_ended_run(n->proxy, n->loop, n->number);
	net_proxy_release(n->proxy);
	n->proxy = NULL;
	fd_closep(&n->report);
}

/* --- between two calls --- */

static uint64_t increase_since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static void net_report_changes_since(const struct net_report *now, const struct net_report *before,
				     struct net_report *ret)
{
	memset(ret, 0, sizeof *ret);
	ret->left_out    = (uint32_t)increase_since(now->left_out, before->left_out);
	ret->connections = increase_since(now->connections, before->connections);
	ret->refused     = increase_since(now->refused, before->refused);
	ret->failed      = increase_since(now->failed, before->failed);
	ret->bytes_in    = increase_since(now->bytes_in, before->bytes_in);
	ret->bytes_out   = increase_since(now->bytes_out, before->bytes_out);
	for (uint32_t i = 0; i < now->n; i++) {
		const struct net_connection *is  = &now->connection[i];
		const struct net_connection *was = i < before->n ? &before->connection[i] : NULL;
		struct net_connection       *to  = &ret->connection[ret->n];

		/*
		 * brig-proxy takes back rows that repeat an earlier one, so another connection may be at the same place
		 */
		if (was && (was->port != is->port || strcmp(was->name, is->name) != 0))
			was = NULL;
		if (was && was->verdict == is->verdict && was->bytes_in == is->bytes_in &&
		    was->bytes_out == is->bytes_out && was->again_ms == is->again_ms)
			continue;
		*to = *is;
		ret->n++;
		if (was) {
			to->bytes_in  = increase_since(to->bytes_in, was->bytes_in);
			to->bytes_out = increase_since(to->bytes_out, was->bytes_out);
		}
	}
}

struct net_report *served_net_copy_report(const struct served_net *n)
{
	struct net_report *mark = n->report >= 0 ? malloc(sizeof *mark) : NULL;

	if (mark)
		read_net_report(n, mark);
	return mark;
}

void served_net_read_report_since(struct served_net *n, const struct net_report *mark, struct net_report *ret)
{
	struct net_report now;

	read_net_report(n, mark ? &now : ret);
	if (mark)
		net_report_changes_since(&now, mark, ret);
	if (n->state == SERVED_NET_LOSS_REPORTED || !proxy_is_lost(n))
		return;
	served_net_set_state(n, SERVED_NET_LOSS_REPORTED);
	if (!net_report_fail_open_connections(ret))
		net_report_add_lost_proxy(ret);
}
