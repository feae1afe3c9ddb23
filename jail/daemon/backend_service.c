#define _GNU_SOURCE
#include "backend_service.h"

#include "child_wait.h"
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

/* --- messages of the monitor --- */

union monitor_received {
	uint32_t              kind;
	struct monitor_answer answer;
	struct monitor_lease  lease;
	struct monitor_proxy  proxy;
};

enum { MONITOR_WAIT_MS = 200 };

/*
 * Many requests at once fill the socket long before they use up a quota. The monitor takes a message in a fraction of a
 * millisecond and never blocks, so the server waits for it; for a limited time, since a monitor that hangs must not
 * stop the server.
 */
static int send_to_monitor(int monitor, const struct monitor_message *message, const int *fds, size_t n)
{
	struct pollfd p = { .fd = monitor, .events = POLLOUT };
	int           r = packet_send(monitor, message, sizeof *message, fds, n);

	for (double end = clock_ms(CLOCK_MONOTONIC) + MONITOR_WAIT_MS;
	     r == -EAGAIN && clock_ms(CLOCK_MONOTONIC) < end;) {
		poll(&p, 1, MONITOR_WAIT_MS);
		r = packet_send(monitor, message, sizeof *message, fds, n);
	}
	return r;
}

/* Runs that the previous brig-proxy serves are among its holders, and keep it. */
static void adopt_announced_proxy(struct backend_service *b, const struct monitor_proxy *message, int *fds, size_t n)
{
	if (n != 1 || message->profile >= MONITOR_ALL_PROFILES_MAX) {
		/* the server had no free descriptor: runs have no network until the monitor announces the next one */
		packet_close_fds(fds, n);
		return;
	}
	net_proxy_release(b->proxy[message->profile]);
	b->proxy[message->profile] = net_proxy_new(fd_take(&fds[0]));
}

enum received_kind { RECEIVED_NONE, RECEIVED_ANSWER, RECEIVED_END };

/* One message, if there is one. */
static enum received_kind receive_monitor_message(struct backend_service *b, struct monitor_answer *ret)
{
	union monitor_received received = { .kind = 0 };
	int               fds[LEASE_FDS];
	size_t            n;
	ssize_t           got = packet_receive(b->monitor, &received, sizeof received, fds, ARRAY_LEN(fds), &n);

	if (got < 0 && errno == EAGAIN)
		return RECEIVED_NONE;
	if (got == 0 || (got < 0 && errno != EMSGSIZE))
		return RECEIVED_END;
	if (received.kind == MONITOR_LEASE && n == LEASE_FDS) {
		lease_box_add(&b->leases, &received.lease, fds);
		return RECEIVED_NONE;
	}
	if (received.kind == MONITOR_PROXY) {
		adopt_announced_proxy(b, &received.proxy, fds, n);
		return RECEIVED_NONE;
	}
	/* of a lease, if the server had no free descriptors for all: the supervisor sees that, and reports it */
	packet_close_fds(fds, n);
	if (received.kind == MONITOR_LEASE)
		return RECEIVED_NONE;
	if (received.kind == MONITOR_RECALL) {
		lease_box_drop_recalled(&b->leases, &received.lease);
		return RECEIVED_NONE;
	}
	if (got == sizeof received.answer && ret)
		*ret = received.answer;
	return got == sizeof received.answer ? RECEIVED_ANSWER : RECEIVED_END;
}

static bool await_monitor_stats(struct backend_service *b, struct monitor_answer *ret)
{
	struct pollfd p   = { .fd = b->monitor, .events = POLLIN };
	double        end = clock_ms(CLOCK_MONOTONIC) + STATS_MS_MAX, left = STATS_MS_MAX;

	for (; left > 0; left = end - clock_ms(CLOCK_MONOTONIC)) {
		enum received_kind kind = poll(&p, 1, (int)left + 1) > 0
			? receive_monitor_message(b, ret) : RECEIVED_NONE;

		if (kind != RECEIVED_NONE)
			return kind == RECEIVED_ANSWER && ret->kind == MONITOR_STATS;
	}
	return false;
}

int backend_service_open(struct backend_service *ret, const struct separation *parts, const struct brig_paths *places,
			 struct err *e)
{
	struct rlimit files;

	*ret = (struct backend_service){ .monitor  = parts->monitor,
					 .pid      = parts->monitor_pid,
					 .mode     = parts->mode,
					 .places   = places,
					 .stats_ms = -STATS_AGE_MS };
	lease_box_init(&ret->leases, getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : 0);
	return fcntl(ret->monitor, F_SETFL, O_NONBLOCK) < 0 ? err_sys(e, "the monitor's socket") : 0;
}

static void free_spent_lease(void *self)
{
	struct backend_service *b = self;

	lease_free(b->spent);
	b->spent = NULL;
}

/*
 * The monitor ends cells, zygotes and groups when our end of the socket closes, and then exits. Without this wait
 * systemd would find them and kill them, with a line of the journal for each.
 */
static void wait_for_monitor_end(int monitor, pid_t pid)
{
	union monitor_received received;
	int               fds[LEASE_FDS];
	size_t            n;
	ssize_t           got = 1;

	(void)shutdown(monitor, SHUT_WR);
	for (double end = clock_ms(CLOCK_MONOTONIC) + END_MS_MAX, left = END_MS_MAX; got && left > 0;
	     left = end - clock_ms(CLOCK_MONOTONIC)) {
		struct pollfd p = { .fd = monitor, .events = POLLIN };

		if (poll(&p, 1, (int)left + 1) <= 0)
			continue;
		got = packet_receive(monitor, &received, sizeof received, fds, ARRAY_LEN(fds), &n);
		if (got > 0)
			packet_close_fds(fds, n);
		else if (errno != EMSGSIZE)
			got = 0;
	}
	if (!got && pid > 0)
		(void)child_wait(pid); /* end of file comes before the process has ended */
}

void backend_service_close(struct backend_service *b)
{
	if (b->monitor < 0)
		return;
	free_spent_lease(b);
	lease_box_free(&b->leases);
	for (size_t i = 0; i < MONITOR_ALL_PROFILES_MAX; i++)
		net_proxy_release(b->proxy[i]);
	wait_for_monitor_end(b->monitor, b->pid);
	fd_closep(&b->monitor);
}

/* --- runs --- */

/* cell: of the lease that is given back with the request, or MONITOR_ANY_CELL. */
static int fill_run_message(struct monitor_message *message, const struct launch_args *o,
			    const struct monitor_cell_id *cell, struct err *e)
{
	struct monitor_run *run = &message->run;

	memset(message, 0, sizeof *message);
	message->kind  = MONITOR_RUN;
	run->profile   = o->number;
	run->cell      = *cell;
	run->files     = o->files_fd >= 0;
	run->terminals = o->terminals;
	run->shown_len = (uint32_t)o->shown_len;
	launch_args_to_run_spec(&run->order, o, clock_ms(CLOCK_MONOTONIC));
	for (size_t i = 0; i < o->shown_len; i++) {
		const char *name = mount_shown_name(o->shown[i]);

		if (strlen(name) >= SHOWN_NAME_MAX)
			return err_set(e, ERR_BAD_SPEC, "ro: a name has more than %d bytes", SHOWN_NAME_MAX - 1);
		memcpy(run->shown[i], name, strlen(name));
	}
	return 0;
}

static int send_run_to_monitor(int monitor, int client, const struct launch_args *o, const struct monitor_cell_id *cell,
		    struct err *e)
{
	struct monitor_message message;
	int                    fds[PACKET_FDS_MAX], r;
	size_t                 n;

	if (exec_args_seal(o->exec_args, o->exec_text, e) < 0 || fill_run_message(&message, o, cell, e) < 0)
		return -1;
	n = launch_args_collect_fds(fds, o, client);
	for (size_t i = 0; i < o->shown_len; i++)
		fds[n++] = o->shown_fd[i];
	if (o->files_fd >= 0)
		fds[n++] = o->files_fd;
	r = send_to_monitor(monitor, &message, fds, n);
	if (r == -EAGAIN)
		return err_set(e, ERR_LIMIT, "the monitor is busy");
	if (r == -ETOOMANYREFS)
		return err_set(e, ERR_LIMIT, "clients that do not read hold all descriptors that the service may have");
	errno = -r;
	return r < 0 ? err_set(e, ERR_PROTOCOL, "the monitor is gone: %s", strerror(errno)) : 0;
}

static int start_run_by_monitor(const struct backend_service *b, struct run *ret, const struct launch_args *o,
			   const struct monitor_cell_id *cell, struct err *e)
{
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socketpair");
	r = send_run_to_monitor(b->monitor, pair[1], o, cell, e);
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
		return -1;
	}
	*ret = (struct run){ .sock = pair[0], .pipes = pipes_count(o->stdin_pipe, o->result_pipe) };
	return 0;
}

/* --- runs by lease --- */

/*
 * Does the name of the rootfs still lead to the tree with which the cell was built? The monitor checks the same for
 * each run that it starts. A plain user's monitor goes on using the trees that it found at its start.
 */
static bool is_lease_tree_current(const struct backend_service *b, const struct profile *profile,
			    const struct monitor_lease *message)
{
	const char *const store[2] = { b->places->store[0], b->places->store[1] };
	struct timespec   named;

	return b->mode == MONITOR_USER ||
	       (store_get_name_time(store, profile->rootfs, &named) && named.tv_sec == message->rootfs_since_s &&
		named.tv_nsec == message->rootfs_since_ns);
}

/* NULL: the monitor must be asked. Leases for an old tree are closed, and the monitor drops their cells. */
static struct lease *take_valid_lease(struct backend_service *b, const struct launch_args *o)
{
	struct lease *t;

	while ((t = lease_box_take(&b->leases, o->number)) && !is_lease_tree_current(b, o->profile, &t->message))
		lease_free(t);
	return t;
}

/* True: the run was started. *cell: the cell of a lease that was closed, which the monitor can make fit. */
static bool start_run_by_lease(struct backend_service *b, struct run *ret, const struct launch_args *o,
			   int streams[PIPES_MAX], struct monitor_cell_id *cell)
{
	struct run_spec spec;
	struct lease   *t;
	enum cell_fit   fit;

	if (o->profile->warm == WARM_NEVER || o->shown_len || o->files_fd >= 0 || o->terminals)
		return false; /* a cell with a lease was built without these */
	if (o->code_fd < 0 && o->tools_fd >= 0)
		/* the supervisor passes a command's spec on, and gets no descriptor over a lease */
		return false;
	launch_args_to_run_spec(&spec, o, clock_ms(CLOCK_MONOTONIC));
	while ((t = take_valid_lease(b, o))) {
		fit = cell_fit_of_limits(o->limits, &o->profile->limits, true, t->message.missing);
		if (fit == CELL_FIT_NONE) { /* the next run may use it */
			lease_box_put_back(&b->leases, t);
			return false;
		}
		if (fit != CELL_FIT_AS_IT_IS) { /* the monitor can make it fit */
			*cell = t->message.cell;
			lease_free(t);
			return false;
		}
		if (lease_send_run_spec(t, &spec, o->exec_text, o->code, o->tools_fd)) {
			/*
			 * The run gets the streams of the lease at once; a command, which may not be there, when it has
			 * started.
			 */
			if (o->code_len)
				pipes_take_client_ends(streams, &t->fd[LEASE_STDOUT], o->stdin_pipe, o->result_pipe);
			*ret = (struct run){ .sock    = fd_take(&t->fd[LEASE_SUPERVISOR]),
					/* the supervisor sends no LAUNCH_STARTED then */
					     .started = o->code_len != 0,
					     .pipes   = pipes_count(o->stdin_pipe, o->result_pipe) };
			b->spent = t;
			return true;
		}
		lease_free(t);
	}
	return false;
}

static int start_run_in_service(void *self, struct run *ret, const struct launch_args *o, int streams[PIPES_MAX],
				struct err *e)
{
	struct backend_service *b    = self;
	struct monitor_cell_id  cell = { .number = MONITOR_ANY_CELL };

	return start_run_by_lease(b, ret, o, streams, &cell) ? 0 : start_run_by_monitor(b, ret, o, &cell, e);
}

static struct net_proxy *get_proxy_of_profile(void *self, const struct served_profile *profile, int config)
{
	struct backend_service *b = self;
	struct net_proxy      **p = &b->proxy[profile->index];
	struct pollfd     unread  = { .fd = b->monitor, .events = POLLIN };

	(void)config; /* the monitor has it */
	/*
	 * Messages of the monitor that the loop has not read yet may announce it. A client that waited for the service
	 * to start may come before the first one was read. The loop sees the end of file, too.
	 */
	if (!*p || net_proxy_is_gone(*p))
		for (int i = 0;
		     i < PENDING_MESSAGES_MAX && poll(&unread, 1, 0) > 0 &&
		     receive_monitor_message(b, NULL) != RECEIVED_END;
		     i++)
			;
	return *p ? net_proxy_hold(*p) : NULL;
}

/* --- figures --- */

static void refresh_monitor_stats(struct backend_service *b)
{
	double                now = clock_ms(CLOCK_MONOTONIC);
	struct monitor_answer answer;
	struct monitor_message message;

	if (now - b->stats_ms < STATS_AGE_MS)
		return;
	memset(&message, 0, sizeof message);
	message.kind = MONITOR_STATS;
	if (packet_send(b->monitor, &message, sizeof message, NULL, 0) < 0 || !await_monitor_stats(b, &answer)) {
		/* uses the old figures for a while: all clients wait while the server waits */
		b->stats_ms = now + STATS_PAUSE_MS;
		return;
	}
	b->stats    = answer.stats;
	b->stats_ms = now;
}

static void count_profile_cells(void *self, const struct served_profile *profile, struct backend_counts *ret)
{
	struct backend_service *b = self;

	refresh_monitor_stats(b);
	*ret = (struct backend_counts){
		.ready    = b->stats.ready[profile->index],
		.building = b->stats.building[profile->index],
		.leases   = lease_box_count_of_profile(&b->leases, profile->index),
		.zygote   = b->stats.zygote[profile->index],
	};
}

/* An answer that comes here is late, and is dropped. */
static bool receive_late_monitor_message(void *self)
{
	return receive_monitor_message(self, NULL) != RECEIVED_END;
}

struct backend backend_service_make(struct backend_service *self)
{
	return (struct backend){ .self = self, .monitor = self->pid, .proxy = get_proxy_of_profile,
				 .start = start_run_in_service, .settle = free_spent_lease,
				 .count = count_profile_cells,
				 .on_readable = receive_late_monitor_message };
}
