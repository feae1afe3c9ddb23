#define _GNU_SOURCE
#include "proxy_run.h"

#include "course.h"
#include "fd.h"
#include "packet.h"
#include "proxy.h"
#include "sealed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

enum { ACCEPT_TURNS = 4, PAUSE_MS = 100 };

/* --- its share of processor time --- */

static int64_t clock_ns(clockid_t clock)
{
	struct timespec t = { 0 };

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000 * 1000 * 1000 + t.tv_nsec;
}

static void watch_run_events(void *owner)
{
	struct run *run = owner;

	loop_set_events(&run->proxy->loop, &run->events, EPOLLIN);
}

/* began: of this thread's processor time, before it worked for the run. */
static void charge_cpu_time(struct run *run, int64_t began)
{
	int64_t used = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	int64_t ms = cpu_share_spend(&run->cpu, cpu_share_for_runs(run->cpus, run->proxy->serves),
				     clock_ns(CLOCK_MONOTONIC),
				     used);

	if (ms == 0)
		return;
	loop_set_events(&run->proxy->loop, &run->events, 0);
	loop_timer_set(&run->proxy->loop, &run->rested, ms);
}

/* One event, and then the next run. No handler ends the run: only the server does. */
static void serve_run_event(void *owner)
{
	struct run *run   = owner;
	int64_t     began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct err  ignored;

	(void)!loop_turn(&run->loop, 0, &ignored);
	charge_cpu_time(run, began);
}

static int open_run_loop(struct run *run, struct err *e)
{
	if (loop_open(&run->loop, e) < 0)
		return -1;
	cpu_share_init(&run->cpu, clock_ns(CLOCK_MONOTONIC));
	run->rested = (struct loop_timer){ .due = watch_run_events, .owner = run };
	run->events = (struct loop_source){ run->loop.fd, serve_run_event, run };
	return loop_add(&run->proxy->loop, &run->events, e);
}

/* --- bounds --- */

/* wake() may end its own connection, but no other one: next stays valid. */
static void wake_connections(void *owner)
{
	struct run        *run   = owner;
	int64_t            began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct connection *c, *next;

	for (c = LIST_FIRST(&run->connections); c; c = next) {
		next = LIST_NEXT(c, link);
		if (c->wake)
			c->wake(c);
	}
	charge_cpu_time(run, began);
}

/* --- listeners --- */

static void run_take_connection(struct run *run, int fd, uint16_t port)
{
	struct sockaddr_in meant  = { 0 };
	socklen_t          len    = sizeof meant;
	enum net_reason    reason = run_check_new_connection(run);
	uint32_t           address;

	(void)getsockname(fd, (struct sockaddr *)&meant, &len);
	address = ntohl(meant.sin_addr.s_addr);
	if (reason != NET_REASON_NONE) {
		const char *name = port ? name_table_name_of_address(&run->names, address) : NULL;
		struct side lost = { .source = { .fd = fd } };

		report_refusal(run->report, name ? name : "", port, reason);
		side_close(&run->loop, &lost, true);
	} else {
		course_start_connection(run, fd, address, port);
	}
}

static void resume_accepting(void *owner)
{
	struct run *run = owner;

	for (size_t i = 0; i < NET_LISTEN_MAX; i++) {
		struct listener *l = &run->listener[i];

		if (l->source.fd >= 0 && l->is_paused)
			loop_set_events(&run->loop, &l->source, EPOLLIN);
		l->is_paused = false;
	}
}

static int accept_connection(struct listener *l)
{
	struct run *run = l->run;
	int         fd  = accept4(l->source.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
		/* epoll would report the waiting connection again and again, and slow down all runs. */
		l->is_paused = true;
		loop_set_events(&run->loop, &l->source, 0);
		if (!run->accept_again.set)
			loop_timer_set(&run->proxy->loop, &run->accept_again, PAUSE_MS);
	}
	return fd;
}

static void on_tcp_connect(void *owner)
{
	struct listener *l = owner;
	int              fd;

	for (int turn = 0; turn < ACCEPT_TURNS && (fd = accept_connection(l)) >= 0; turn++)
		run_take_connection(l->run, fd, l->port);
}

static void on_dns_connect(void *owner)
{
	struct listener *l  = owner;
	int              fd = accept_connection(l);

	if (fd >= 0)
		dns_service_add_tcp(l->run, fd);
}

static void on_dns_datagram(void *owner)
{
	struct listener *l = owner;

	dns_service_answer_datagrams(l->run, l->source.fd);
}

static void add_run_listener(struct run *run, size_t i, int fd, uint16_t port)
{
	struct listener *l = &run->listener[i];
	struct err       e;

	*l = (struct listener){ .source = { fd, on_tcp_connect, l }, .run = run, .port = port };
	if (i == NET_LISTEN_DNS_UDP)
		l->source.ready = on_dns_datagram;
	else if (i == NET_LISTEN_DNS_TCP)
		l->source.ready = on_dns_connect;
	(void)fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
	if (loop_add(&run->loop, &l->source, &e) < 0)
		fd_closep(&l->source.fd); /* closed: programs are refused as if nothing had ever listened */
}

/* One message brings all listeners. None comes when the cell has ended before, or its sender failed. */
static void receive_listeners(void *owner)
{
	struct run          *run  = owner;
	struct net_listeners what = { 0 };
	int                  fds[NET_LISTEN_MAX];
	size_t               n = 0;
	ssize_t              r = packet_receive(run->channel.fd, &what, sizeof what, fds, NET_LISTEN_MAX, &n);

	if (r < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (r == sizeof what && net_listeners_are_sound(&what) && n == NET_LISTEN_PORTS + what.ports)
		for (size_t i = 0; i < n; i++)
			add_run_listener(run, i, fds[i], i < NET_LISTEN_PORTS ? 0 : what.port[i - NET_LISTEN_PORTS]);
	else
		packet_close_fds(fds, n);
	loop_remove(&run->loop, &run->channel);
	fd_closep(&run->channel.fd);
}

/* --- beginning and end --- */

/* The file is only as long as its number of rules needs. */
static const struct net_rules *map_run_rules(int fd, struct err *e)
{
	struct net_rules *rules = MAP_FAILED;
	size_t            len;

	if (sealed_check(fd, sizeof *rules, &len, e) < 0) {
		err_wrap(e, "the rules of a run");
		return NULL;
	}
	if (len)
		rules = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	if (rules != MAP_FAILED && len >= sizeof rules->n && rules->n <= NET_RULES_MAX &&
	    len == net_rules_size(rules) && net_rules_are_sound(rules))
		return rules;
	if (rules != MAP_FAILED)
		munmap(rules, len);
	err_set(e, ERR_BROKEN, "the rules of a run are malformed");
	return NULL;
}

static struct net_report *map_run_report(int fd, struct err *e)
{
	struct net_report *report = MAP_FAILED;
	struct stat        st;

	if (fstat(fd, &st) == 0 && st.st_size == sizeof *report)
		report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (report == MAP_FAILED) {
		err_set(e, ERR_BROKEN, "the report of a run cannot be written");
		return NULL;
	}
	return report;
}

static int proxied_run_set_up(struct run *run, const struct proxy_message *m, int fds[3], struct err *e)
{
	run->policy = (struct policy){ run->proxy->config, map_run_rules(fds[1], e) };
	if (!run->policy.rules)
		return -1;
	run->report = map_run_report(fds[2], e);
	if (!run->report)
		return -1;
	run->connections_max = m->connections_max;
	run->bytes_max       = m->bytes_max;
	run->accept_again    = (struct loop_timer){ .due = resume_accepting, .owner = run };
	run->user            = m->user;
	run->cpus            = m->cpus;
	byte_rate_init(&run->rate, &run->proxy->loop, m->rate_max, wake_connections, run);
	if (open_run_loop(run, e) < 0)
		return -1;
	run->channel = (struct loop_source){ fds[0], receive_listeners, run };
	if (loop_add(&run->loop, &run->channel, e) < 0) {
		run->channel.fd = -1;
		return -1;
	}
	fds[0] = -1;
	return 0;
}

static struct run *proxied_run_create(struct proxy *proxy, uint64_t number, struct err *e)
{
	struct run *run = calloc(1, sizeof *run);

	if (!run) {
		err_set(e, ERR_SETUP, "no memory for it");
		return NULL;
	}
	run->proxy      = proxy;
	run->number     = number;
	run->channel.fd = run->loop.fd = -1;
	for (size_t i = 0; i < NET_LISTEN_MAX; i++)
		run->listener[i].source.fd = -1;
	LIST_INSERT_HEAD(&proxy->runs, run, link);
	proxy->serves++;
	return run;
}

int proxied_run_start(struct proxy *proxy, const struct proxy_message *message, int fds[3], struct err *e)
{
	struct run *run = run_check_message_bounds(proxy, message, e) < 0
				  ? NULL
				  : proxied_run_create(proxy, message->run, e);
	int         r   = run ? proxied_run_set_up(run, message, fds, e) : -1;

	packet_close_fds(fds, 3);
	if (run && r < 0)
		proxied_run_end_and_free(run);
	return r;
}

void proxied_run_end_and_free(struct run *run)
{
	loop_timer_clear(&run->proxy->loop, &run->accept_again);
	for (size_t i = 0; i < NET_LISTEN_MAX; i++) {
		if (run->listener[i].source.fd >= 0)
			loop_remove(&run->loop, &run->listener[i].source);
		fd_closep(&run->listener[i].source.fd);
	}
	if (run->channel.fd >= 0)
		loop_remove(&run->loop, &run->channel);
	fd_closep(&run->channel.fd);
	while (!LIST_EMPTY(&run->connections))
		connection_close_and_free(LIST_FIRST(&run->connections), true);
	lookups_destroy(run->lookups);
	dns_service_done(run);
	byte_rate_done(&run->rate);
	name_table_free(&run->names);
	loop_timer_clear(&run->proxy->loop, &run->rested);
	if (run->loop.fd >= 0)
		loop_remove(&run->proxy->loop, &run->events);
	loop_close(&run->loop);
	if (run->policy.rules)
		munmap((void *)(uintptr_t)run->policy.rules, net_rules_size(run->policy.rules));
	if (run->report)
		munmap(run->report, sizeof *run->report);
	LIST_REMOVE(run, link);
	run->proxy->serves--;
	if (run->proxy->open == 0)
		(void)malloc_trim(0); /* what hundreds of connections used would stay */
	free(run);
}
