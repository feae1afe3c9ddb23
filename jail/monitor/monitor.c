#define _GNU_SOURCE
#include "monitor.h"

#include "clock.h"
#include "fd.h"
#include "monitor_check.h"
#include "monitor_parts.h"
#include "packet.h"
#include "privilege.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLEAN_MS = 2, END_MS_MAX = 5000 };

/* --- messages --- */

enum sender { SERVER, READER };

/* When a message may come: the reader has sent a SEAL, and neither SERVE nor DROP, while the monitor is SEALED. */
enum { BEGINS = 1 << MONITOR_BEGINS, LEARNS = 1 << MONITOR_LEARNS, SERVES = 1 << MONITOR_SERVES, SEALED = SERVES << 1 };

/* Every message that the monitor takes. The others are its own. */
/* clang-format off */
static const struct {
	enum sender sender;
	int         when;
	size_t    (*fds)(const struct monitor_message *m); /* how many descriptors come with it; NULL: none */
	monitor_fn  *take;
} messages[] = {
	[MONITOR_SETUP]   = { READER, BEGINS,                            NULL,                monitor_handle_setup },
	[MONITOR_PROFILE] = { READER, LEARNS | SERVES,                   monitor_count_profile_fds, monitor_handle_profile },
	[MONITOR_SEAL]    = { READER, LEARNS | SERVES,                   NULL,                monitor_handle_seal },
	[MONITOR_SERVE]   = { READER, SEALED,                            NULL,                monitor_handle_serve },
	[MONITOR_DROP]    = { READER, BEGINS | LEARNS | SERVES | SEALED, NULL,                monitor_handle_drop },
	[MONITOR_RUN]     = { SERVER,   SERVES | SEALED,                 monitor_count_run_fds,     monitor_handle_run },
	[MONITOR_STATS]   = { SERVER,   SERVES | SEALED,                 NULL,                monitor_handle_stats },
};
/* clang-format on */

static bool is_message_allowed_now(const struct monitor *k, enum sender sender, const struct monitor_message *m, size_t fds)
{
	int now = k->offer.is_sealed ? SEALED : 1 << k->state;

	return m->kind < ARRAY_LEN(messages) && messages[m->kind].sender == sender && messages[m->kind].when & now &&
	       fds == (messages[m->kind].fds ? messages[m->kind].fds(m) : 0);
}

/*
 * No other profiles will come: those that serve go on. After a SEAL the monitor cannot find out whether the server
 * uses the new numbers already: then both the old and the new profiles serve.
 */
static void handle_reader_end(struct monitor *k)
{
	fd_closep(&k->reader);
	if (k->offer.is_sealed)
		monitor_serve_old_and_new_profiles(k);
	else
		monitor_retire_offered_profiles(k);
}

/* False when the server is gone, or a message breaks the protocol: *status is then the monitor's exit status. */
static bool receive_and_handle_message(struct monitor *k, enum sender sender, int *status)
{
	static const char *const names[] = { [SERVER] = "server", [READER] = "reader" };
	struct monitor_message   message;
	int                fds[PACKET_FDS_MAX], r = -1;
	size_t             n;
	struct err         e;
	ssize_t got = packet_receive(sender == SERVER ? k->server : k->reader, &message, sizeof message, fds, ARRAY_LEN(fds), &n);

	*status = EXIT_SUCCESS;
	if (got == 0 && sender == READER)
		handle_reader_end(k);
	if (got == 0)
		return sender == READER;
	*status = EXIT_FAILURE;
	if (got != sizeof message)
		err_set(&e, ERR_PROTOCOL, "a message of the %s has %zd bytes", names[sender], got);
	else if (!is_message_allowed_now(k, sender, &message, n))
		err_set(&e, ERR_PROTOCOL, "the %s may not send a message of kind %u with %zu descriptors now", names[sender],
			message.kind, n);
	else
		r = messages[message.kind].take(k, &message, fds, &e);
	packet_close_fds(fds, n);
	if (r < 0)
		monitor_log_error(&e);
	return r == 0;
}

/* --- the loop --- */

/* The server, the reader, the groups' parent, a supervisor and a brig-proxy of each profile, the cells' control sockets. */
enum { GROUPS = READER + 1, FIRST_PROFILE, POLL_SET_MAX = FIRST_PROFILE + 2 * MONITOR_ALL_PROFILES_MAX + MONITOR_CELLS_MAX };

struct poll_set {
	struct pollfd fds[POLL_SET_MAX];
	struct monitored_cell *cell[POLL_SET_MAX];
	size_t        n;
};

static void poll_set_add(struct poll_set *l, int fd, struct monitored_cell *cell)
{
	l->cell[l->n]  = cell;
	l->fds[l->n++] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

/*
 * Messages that the server sent before the reader's message are read first: they may name profiles that the reader's
 * message retires. After SERVER_FIRST of them, more than the socket can hold, the reader's message is read: a server
 * that sends without end cannot delay it.
 */
static bool receive_from_server_or_reader(struct monitor *k, bool server, bool reader, int *status)
{
	enum { SERVER_FIRST = 256 };

	server |= reader && packet_is_readable(k->server); /* the server may have sent one after poll() returned */
	if (reader && (!server || k->reader_waits == SERVER_FIRST)) {
		k->reader_waits = 0;
		return receive_and_handle_message(k, READER, status);
	}
	k->reader_waits += reader;
	return !server || receive_and_handle_message(k, SERVER, status);
}

/* systemd has changed the owner of the groups (cg_parent_watch()). */
static void relend_cgroup_parent(struct monitor *k)
{
	char       events[4096];
	struct err e;

	while (read(k->parent_watch, events, sizeof events) > 0)
		;
	if (cg_parent_lend_to_gid(&k->parent, k->own.init_id, &e) < 0)
		monitor_log_error(&e);
}

static bool monitor_poll_once(struct monitor *k, int wait, int *status)
{
	struct poll_set l;

	l.n = 0;
	poll_set_add(&l, k->server, NULL);
	poll_set_add(&l, k->reader, NULL);
	poll_set_add(&l, k->parent_watch, NULL);
	for (uint32_t i = 0; i < k->monitored_top; i++) {
		poll_set_add(&l, k->kept[i].userns.supervisor, NULL);
		poll_set_add(&l, k->kept[i].proxy.pidfd, NULL);
	}
	for (size_t i = 0; i < k->top; i++)
		if (k->cell[i].control >= 0)
			poll_set_add(&l, k->cell[i].control, &k->cell[i]);
	if (poll(l.fds, l.n, wait) < 0)
		return errno == EINTR;
	if (l.fds[GROUPS].revents)
		relend_cgroup_parent(k);
	for (size_t i = FIRST_PROFILE + 2 * k->monitored_top; i < l.n; i++)
		if (l.fds[i].revents)
			monitor_receive_cell_message(k, l.cell[i]);
	for (uint32_t i = 0; i < k->monitored_top; i++) {
		if (l.fds[FIRST_PROFILE + 2 * i].revents)
			monitor_handle_supervisor_exit(&k->kept[i]);
		if (l.fds[FIRST_PROFILE + 2 * i + 1].revents)
			monitor_handle_proxy_exit(&k->kept[i]);
	}
	return receive_from_server_or_reader(k, l.fds[SERVER].revents, l.fds[READER].revents, status);
}

/* Orphans of supervisors are children of the monitor, too (PR_SET_CHILD_SUBREAPER). */
static bool reap_exited_children(void)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		;
	return pid == 0;
}

/* Every cell dies when its control socket closes; then its groups can be removed. */
static void shut_down_cells_and_supervisors(struct monitor *k)
{
	double     deadline = clock_ms(CLOCK_MONOTONIC) + END_MS_MAX;
	struct err ignored;

	for (size_t i = 0; i < k->top; i++)
		if (k->cell[i].state != MONITORED_CELL_FREE)
			monitored_cell_close_control(&k->cell[i]);
	for (uint32_t i = 0; i < k->monitored_top; i++) {
		k->kept[i].state = MONITORED_PROFILE_RETIRED;
		profile_userns_kill(&k->kept[i].userns);
		monitored_proxy_shut_down(&k->kept[i].proxy);
	}
	while ((!monitor_clean_up_cells(k) || reap_exited_children()) && clock_ms(CLOCK_MONOTONIC) < deadline)
		poll(NULL, 0, CLEAN_MS);
	(void)!cg_close(&k->proxies, &ignored);
	cg_parent_remove(&k->parent);
}

int monitor_main(void)
{
	struct monitor *k      = malloc(sizeof *k);
	int             status = EXIT_FAILURE;
	struct err      e;

	signal(SIGPIPE, SIG_IGN);
	umask(022);
	if (!k || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || privilege_make_undumpable(&e) < 0) {
		fprintf(stderr, "monitor: cannot begin: %m\n");
		return EXIT_FAILURE;
	}
	*k = (struct monitor){
		.server = MONITOR_FD, .reader = MONITOR_RULES_FD, .lock_fd = MONITOR_LOCK_FD, .own.fd = -1, .parent_watch = -1
	};
	for (size_t i = 0; i < MONITOR_CELLS_MAX; i++)
		k->cell[i] = MONITORED_CELL_NONE;
	for (size_t i = 0; i < MONITOR_ALL_PROFILES_MAX; i++)
		k->kept[i] = MONITORED_PROFILE_NONE;
	for (bool goes_on = true; goes_on;) {
		bool is_clean = monitor_clean_up_cells(k);
		double cells = monitor_refill_ready_cells(k), proxies = monitor_maintain_proxies(k);
		int    wait  = (int)(cells < proxies ? cells : proxies) + 1;

		monitor_free_retired_profiles(k);
		goes_on = monitor_poll_once(k, is_clean ? wait : CLEAN_MS, &status);
	}
	shut_down_cells_and_supervisors(k);
	free(k);
	return status;
}
