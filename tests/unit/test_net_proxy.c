/* test_net_proxy.c - brig-proxy is told of the end of each run, also when it did not read for a while */
#define _GNU_SOURCE
#include "fd.h"
#include "net_proxy.h"
#include "packet.h"
#include "scratch.h"

#include <sys/socket.h>

enum { RUNS = 100 };

struct ends {
	struct loop       loop;
	struct net_proxy *server;
	int               proxy; /* where brig-proxy reads */
};

static void make(struct ends *e)
{
	struct err ignored;
	int        pair[2], small = 1;

	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
	must(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0, "SO_SNDBUF");
	must(loop_open(&e->loop, &ignored) == 0 && (e->server = net_proxy_new(pair[0])), "a loop");
	e->proxy = pair[1];
}

static void unmake(struct ends *e)
{
	net_proxy_release(e->server);
	loop_close(&e->loop);
	fd_closep(&e->proxy);
}

static int begin(struct ends *e, uint64_t run)
{
	struct proxy_message message;

	memset(&message, 0, sizeof message);
	message.kind = PROXY_BEGIN;
	message.run  = run;
	return net_proxy_send_new_run(e->server, &message, NULL, 0);
}

/* Reads all that is there; how often the end of each of the runs was told is added up in told. */
static void read_all(struct ends *e, unsigned told[RUNS])
{
	struct proxy_message message;
	size_t               n;

	while (packet_is_readable(e->proxy) && packet_receive(e->proxy, &message, sizeof message, NULL, 0, &n) == sizeof message)
		if (message.kind == PROXY_END && message.run < RUNS)
			told[message.run]++;
}

/* The loop is turned as long as it has something to do: at once, since nothing here takes time. */
static bool turn(struct ends *e)
{
	struct err ignored;

	return loop_turn(&e->loop, 0, &ignored) == 1;
}

static void check_full(void)
{
	unsigned    told[RUNS] = { 0 };
	struct ends e;
	bool        once = true;

	make(&e);
	for (uint64_t i = 0; i < RUNS; i++)
		net_proxy_send_ended_run(e.server, &e.loop, i);
	tap_ok(e.server->ended_len > 0 && begin(&e, RUNS) == -EAGAIN, "while brig-proxy cannot be told of an end, no run begins");
	tap_ok(!turn(&e), "and the server does not try again for nothing");
	do
		read_all(&e, told);
	while (turn(&e));
	for (int i = 0; i < RUNS; i++)
		once &= told[i] == 1;
	tap_ok(once, "when it reads again it is told of the end of each run, once");
	tap_ok(begin(&e, RUNS) == 0, "and the next run begins");
	unmake(&e);
}

static void check_gone(void)
{
	struct ends e;

	make(&e);
	for (uint64_t i = 0; i < RUNS; i++)
		net_proxy_send_ended_run(e.server, &e.loop, i);
	fd_closep(&e.proxy);
	tap_ok(turn(&e) && e.server->ended_len == 0 && !turn(&e), "one that has ended is told nothing, and is looked at once");
	unmake(&e);
}

static void check_many(void)
{
	struct ends e;

	make(&e);
	for (uint64_t i = 0; i < 10 * MONITOR_RUNS_MAX; i++)
		net_proxy_send_ended_run(e.server, &e.loop, i);
	tap_ok(e.server->ended_len == MONITOR_RUNS_MAX, "numbers take no more room than there can be runs");
	unmake(&e);
	tap_ok(true, "and a brig-proxy that is released is no longer waited for");
}

int main(void)
{
	check_full();
	check_gone();
	check_many();
	return tap_done();
}
