#define _GNU_SOURCE
#include "backend_service.h"

#include "cell_fit.h"
#include "clock.h"
#include "fd.h"
#include "packet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { END_MS_MAX = 3000, STATS_MS_MAX = 500, STATS_AGE_MS = 50, STATS_PAUSE_MS = 10000,
       PENDING_MESSAGES_MAX = 256 };

/* --- what the keeper says --- */

union keeper_received {
	uint32_t             kind;
	struct keeper_answer answer;
	struct keeper_ticket ticket;
	struct keeper_proxy  proxy;
};

enum { KEEPER_WAIT_MS = 200 };

/*
 * Many requests at once fill the socket long before they use up a quota. The keeper takes a message in a fraction of a millisecond
 * and never blocks, so the door waits for it; for a limited time, since a keeper that hangs must not stop the door.
 */
static int send_to_keeper(int keeper, const struct keeper_message *message, const int *fds, size_t n)
{
	struct pollfd p = { .fd = keeper, .events = POLLOUT };
	int           r = packet_send(keeper, message, sizeof *message, fds, n);

	for (double end = clock_ms(CLOCK_MONOTONIC) + KEEPER_WAIT_MS; r == -EAGAIN && clock_ms(CLOCK_MONOTONIC) < end;) {
		poll(&p, 1, KEEPER_WAIT_MS);
		r = packet_send(keeper, message, sizeof *message, fds, n);
	}
	return r;
}

/* If the door had no free descriptors for it, what came of the ticket is closed: the supervisor sees that, and tells the keeper. */
static void take_ticket(struct backend_service *b, const struct keeper_ticket *message, int *fds, size_t n)
{
	if (n == TICKET_FDS)
		ticket_box_put(&b->tickets, message, fds);
	else
		packet_drop(fds, n);
}

/* Runs that the previous brig-proxy serves are among its holders, and keep it. */
static void take_proxy(struct backend_service *b, const struct keeper_proxy *message, int *fds, size_t n)
{
	if (n != 1 || message->profile >= KEEPER_KEPT_PROFILES_MAX) {
		packet_drop(fds, n); /* the door had no free descriptor: runs have no network until the keeper announces the next one */
		return;
	}
	net_proxy_release(b->proxy[message->profile]);
	b->proxy[message->profile] = net_proxy_open(fd_take(&fds[0]));
}

enum received_kind { RECEIVED_NONE, RECEIVED_ANSWER, RECEIVED_END };

/* One message, if there is one. */
static enum received_kind receive_message(struct backend_service *b, struct keeper_answer *ret)
{
	union keeper_received received = { .kind = 0 };
	int               fds[TICKET_FDS];
	size_t            n;
	ssize_t           got = packet_receive(b->keeper, &received, sizeof received, fds, ARRAY_LEN(fds), &n);

	if (got < 0 && errno == EAGAIN)
		return RECEIVED_NONE;
	if (got == 0 || (got < 0 && errno != EMSGSIZE))
		return RECEIVED_END;
	if (received.kind == KEEPER_TICKET) {
		take_ticket(b, &received.ticket, fds, n);
		return RECEIVED_NONE;
	}
	if (received.kind == KEEPER_PROXY) {
		take_proxy(b, &received.proxy, fds, n);
		return RECEIVED_NONE;
	}
	packet_drop(fds, n);
	if (received.kind == KEEPER_RECALL) {
		ticket_box_void(&b->tickets, &received.ticket);
		return RECEIVED_NONE;
	}
	if (got == sizeof received.answer && ret)
		*ret = received.answer;
	return got == sizeof received.answer ? RECEIVED_ANSWER : RECEIVED_END;
}

static bool await_stats(struct backend_service *b, struct keeper_answer *ret)
{
	struct pollfd p   = { .fd = b->keeper, .events = POLLIN };
	double        end = clock_ms(CLOCK_MONOTONIC) + STATS_MS_MAX, left = STATS_MS_MAX;

	for (; left > 0; left = end - clock_ms(CLOCK_MONOTONIC)) {
		enum received_kind kind = poll(&p, 1, (int)left + 1) > 0 ? receive_message(b, ret) : RECEIVED_NONE;

		if (kind != RECEIVED_NONE)
			return kind == RECEIVED_ANSWER && ret->kind == KEEPER_STATS;
	}
	return false;
}

static uint64_t most_files(void)
{
	struct rlimit files;

	return getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : 0;
}

int backend_service_open(struct backend_service *ret, const struct separation *parts, const struct places *places, struct err *e)
{
	*ret = (struct backend_service){ .keeper = parts->keeper, .pid = parts->keeper_pid, .mode = parts->mode, .places = places, .stats_ms = -STATS_AGE_MS };
	ticket_box_init(&ret->tickets, most_files());
	return fcntl(ret->keeper, F_SETFL, O_NONBLOCK) < 0 ? err_sys(e, "the keeper's socket") : 0;
}

static void settle(void *self)
{
	struct backend_service *b = self;

	ticket_free(b->spent);
	b->spent = NULL;
}

/*
 * The keeper ends cells, zygotes and groups when our end of the socket closes, and then exits. Without this wait systemd
 * would find them and kill them, with a line of the journal for each.
 */
static void wait_for_end(int keeper, pid_t pid)
{
	union keeper_received received;
	int               fds[TICKET_FDS];
	size_t            n;
	ssize_t           got = 1;

	(void)shutdown(keeper, SHUT_WR);
	for (double end = clock_ms(CLOCK_MONOTONIC) + END_MS_MAX, left = END_MS_MAX; got && left > 0; left = end - clock_ms(CLOCK_MONOTONIC)) {
		struct pollfd p = { .fd = keeper, .events = POLLIN };

		if (poll(&p, 1, (int)left + 1) <= 0)
			continue;
		got = packet_receive(keeper, &received, sizeof received, fds, ARRAY_LEN(fds), &n);
		if (got > 0)
			packet_drop(fds, n);
		else if (errno != EMSGSIZE)
			got = 0;
	}
	while (!got && pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		; /* end of file comes before the process has ended */
}

void backend_service_close(struct backend_service *b)
{
	if (b->keeper < 0)
		return;
	settle(b);
	ticket_box_done(&b->tickets);
	for (size_t i = 0; i < KEEPER_KEPT_PROFILES_MAX; i++)
		net_proxy_release(b->proxy[i]);
	wait_for_end(b->keeper, b->pid);
	fd_closep(&b->keeper);
}

/* --- runs --- */

static int fill_shown(struct keeper_run *run, const struct run_order *o, struct err *e)
{
	run->shown_len = (uint32_t)o->shown_len;
	for (size_t i = 0; i < o->shown_len; i++) {
		const char *name = strrchr(o->shown[i], '/') + 1; /* behind "workspace/" */

		if (strlen(name) >= SHOWN_NAME_MAX)
			return err_set(e, ERR_BAD_SPEC, "ro: a name has more than %d bytes", SHOWN_NAME_MAX - 1);
		memcpy(run->shown[i], name, strlen(name));
	}
	return 0;
}

/* cell: of the ticket that is given back with the request, or KEEPER_ANY_CELL. */
static int fill(struct keeper_message *message, const struct run_order *o, const struct keeper_cell_id *cell, struct err *e)
{
	struct keeper_run *run = &message->run;

	memset(message, 0, sizeof *message);
	message->kind  = KEEPER_RUN;
	run->profile   = o->number;
	run->cell      = *cell;
	run->files     = o->files_fd >= 0;
	run->terminals = o->terminals;
	run_order_fill(&run->order, o, clock_ms(CLOCK_MONOTONIC));
	return fill_shown(run, o, e);
}

static int send_run(int keeper, int client, const struct run_order *o, const struct keeper_cell_id *cell, struct err *e)
{
	struct keeper_message message;
	int                   fds[PACKET_FDS_MAX], r;
	size_t                n;

	if (exec_args_seal(o->exec_args, o->exec_text, e) < 0 || fill(&message, o, cell, e) < 0)
		return -1;
	n = run_order_fds(fds, o, client);
	for (size_t i = 0; i < o->shown_len; i++)
		fds[n++] = o->shown_fd[i];
	if (o->files_fd >= 0)
		fds[n++] = o->files_fd;
	r = send_to_keeper(keeper, &message, fds, n);
	if (r == -EAGAIN)
		return err_set(e, ERR_LIMIT, "the keeper is busy");
	if (r == -ETOOMANYREFS)
		return err_set(e, ERR_LIMIT, "clients that do not read hold all descriptors that the service may have");
	errno = -r;
	return r < 0 ? err_set(e, ERR_PROTOCOL, "the keeper is gone: %s", strerror(errno)) : 0;
}

static int start_by_keeper(const struct backend_service *b, struct run *ret, const struct run_order *o,
			   const struct keeper_cell_id *cell, struct err *e)
{
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socketpair");
	r = send_run(b->keeper, pair[1], o, cell, e);
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
		return -1;
	}
	*ret = (struct run){ .sock = pair[0], .pipes = pipes_count(o->stdin_pipe, o->result_pipe) };
	return 0;
}

/* --- runs by ticket --- */

/*
 * Does the name of the rootfs still lead to the tree with which the cell was built? The keeper checks the same for each run that it
 * starts. A plain user's keeper goes on using the trees that it found at its start.
 */
static bool tree_is_current(const struct backend_service *b, const struct profile *profile, const struct keeper_ticket *message)
{
	const char *const store[2] = { b->places->store[0], b->places->store[1] };
	struct timespec   named;

	return b->mode == KEEPER_USER || (store_name_time(store, profile->rootfs, &named) &&
					  named.tv_sec == message->rootfs_since_s && named.tv_nsec == message->rootfs_since_ns);
}

/* NULL: the keeper must be asked. Tickets for an old tree are closed, and the keeper drops their cells. */
static struct ticket *take_valid(struct backend_service *b, const struct run_order *o)
{
	struct ticket *t;

	while ((t = ticket_box_take(&b->tickets, o->number)) && !tree_is_current(b, o->profile, &t->message))
		ticket_free(t);
	return t;
}

/* The run gets the streams of the ticket at once; a command, which may not be there, when it has started. */
static void take_over(struct ticket *t, struct run *ret, const struct run_order *o, int streams[PIPES_MAX])
{
	if (o->code_len)
		pipes_take(streams, &t->fd[TICKET_STDOUT], o->stdin_pipe, o->result_pipe);
	*ret = (struct run){ .sock    = fd_take(&t->fd[TICKET_SUPERVISOR]),
			     .started = o->code_len != 0, /* the supervisor sends no LAUNCH_STARTED then */
			     .pipes   = pipes_count(o->stdin_pipe, o->result_pipe) };
}

/* The run cannot use the cell as it is. If the keeper can make it fit, *cell names it; else the ticket is left to the next run. */
static void leave_to_keeper(struct backend_service *b, struct ticket *t, enum cell_fit fit, struct keeper_cell_id *cell)
{
	if (fit == CELL_FIT_NONE) {
		ticket_box_put_back(&b->tickets, t);
		return;
	}
	*cell = t->message.cell;
	ticket_free(t);
}

/* True: the run was started. */
static bool start_by_ticket(struct backend_service *b, struct run *ret, const struct run_order *o, int streams[PIPES_MAX],
			    struct keeper_cell_id *cell)
{
	struct launch_order order;
	struct ticket      *t;
	enum cell_fit       fit;

	if (o->profile->warm == WARM_NEVER || o->shown_len || o->files_fd >= 0 || o->terminals)
		return false; /* a cell with a ticket was built without these */
	if (o->code_fd < 0 && o->tools_fd >= 0)
		return false; /* the supervisor passes a command's order on (ticket_use()), and gets no descriptor over a ticket */
	run_order_fill(&order, o, clock_ms(CLOCK_MONOTONIC));
	while ((t = take_valid(b, o))) {
		fit = cell_fit(o->limits, &o->profile->limits, true, t->message.missing);
		if (fit != CELL_FIT_AS_IT_IS) {
			leave_to_keeper(b, t, fit, cell);
			return false;
		}
		if (ticket_use(t, &order, o->exec_text, o->code, o->tools_fd)) {
			take_over(b->spent = t, ret, o, streams);
			return true;
		}
		ticket_free(t);
	}
	return false;
}

static int start(void *self, struct run *ret, const struct run_order *o, int streams[PIPES_MAX], struct err *e)
{
	struct backend_service *b    = self;
	struct keeper_cell_id   cell = { .number = KEEPER_ANY_CELL };

	return start_by_ticket(b, ret, o, streams, &cell) ? 0 : start_by_keeper(b, ret, o, &cell, e);
}

/*
 * Reads messages of the keeper that the loop has not read yet: they may announce a brig-proxy. A client that waited for the service
 * to start may come before the first one was read.
 */
static void receive_pending(struct backend_service *b)
{
	struct pollfd p = { .fd = b->keeper, .events = POLLIN };

	for (int i = 0; i < PENDING_MESSAGES_MAX && poll(&p, 1, 0) > 0; i++)
		if (receive_message(b, NULL) == RECEIVED_END)
			return; /* the loop sees the end of file, too */
}

static struct net_proxy *proxy(void *self, const struct served_profile *profile, int config)
{
	struct backend_service *b = self;

	(void)config; /* the keeper has it */
	if (!b->proxy[profile->index] || net_proxy_is_gone(b->proxy[profile->index]))
		receive_pending(b);
	return b->proxy[profile->index] ? net_proxy_hold(b->proxy[profile->index]) : NULL;
}

/* --- figures --- */

static void refresh(struct backend_service *b)
{
	double               now = clock_ms(CLOCK_MONOTONIC);
	struct keeper_answer answer;
	struct keeper_message message;

	if (now - b->stats_ms < STATS_AGE_MS)
		return;
	memset(&message, 0, sizeof message);
	message.kind = KEEPER_STATS;
	if (packet_send(b->keeper, &message, sizeof message, NULL, 0) < 0 || !await_stats(b, &answer)) {
		b->stats_ms = now + STATS_PAUSE_MS; /* uses the old figures for a while: all clients wait while the door waits */
		return;
	}
	b->stats    = answer.stats;
	b->stats_ms = now;
}

static void count(void *self, const struct served_profile *profile, struct backend_counts *ret)
{
	struct backend_service *b = self;

	refresh(b);
	*ret = (struct backend_counts){ .ready = b->stats.ready[profile->index], .building = b->stats.building[profile->index],
					.tickets = ticket_box_count(&b->tickets, profile->index),
					.zygote = b->stats.zygote[profile->index] };
}

static pid_t keeper(void *self)
{
	return ((struct backend_service *)self)->pid;
}

static int lifeline(void *self)
{
	return ((struct backend_service *)self)->keeper;
}

/* An answer that comes here is late, and is dropped. */
static bool on_readable(void *self)
{
	return receive_message(self, NULL) != RECEIVED_END;
}

struct backend backend_service(struct backend_service *self)
{
	static const struct backend_ops ops = { .name = "keeper", .is_confinable = true, .proxy = proxy, .start = start, .settle = settle, .count = count, .keeper = keeper,
						.lifeline = lifeline, .on_readable = on_readable };

	return (struct backend){ &ops, self };
}
