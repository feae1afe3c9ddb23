#define _GNU_SOURCE
#include "keeper.h"

#include "clock.h"
#include "fd.h"
#include "keeper_check.h"
#include "keeper_parts.h"
#include "packet.h"
#include "privilege.h"
#include "stderr_line.h"

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

enum sender { DOOR, READER };

/* When a message may come: the reader has sent a SEAL, and neither SERVE nor DROP, while the keeper is SEALED. */
enum { BEGINS = 1 << KEEPER_BEGINS, LEARNS = 1 << KEEPER_LEARNS, SERVES = 1 << KEEPER_SERVES, SEALED = SERVES << 1 };

/* Every message that the keeper takes. The others are its own. */
/* clang-format off */
static const struct {
	enum sender sender;
	int         when;
	size_t    (*fds)(const struct keeper_message *m); /* how many descriptors come with it; NULL: none */
	keeper_fn  *take;
} messages[] = {
	[KEEPER_SETUP]   = { READER, BEGINS,                            NULL,               keeper_take_setup },
	[KEEPER_PROFILE] = { READER, LEARNS | SERVES,                   keeper_profile_fds, keeper_take_profile },
	[KEEPER_SEAL]    = { READER, LEARNS | SERVES,                   NULL,               keeper_take_seal },
	[KEEPER_SERVE]   = { READER, SEALED,                            NULL,               keeper_take_serve },
	[KEEPER_DROP]    = { READER, BEGINS | LEARNS | SERVES | SEALED, NULL,               keeper_take_drop },
	[KEEPER_RUN]     = { DOOR,   SERVES | SEALED,                   keeper_run_fds,     keeper_take_run },
	[KEEPER_STATS]   = { DOOR,   SERVES | SEALED,                   NULL,               keeper_answer_stats },
};
/* clang-format on */

static bool is_for_now(const struct keeper *k, enum sender sender, const struct keeper_message *m, size_t fds)
{
	int now = k->offer.is_sealed ? SEALED : 1 << k->state;

	return m->kind < ARRAY_LEN(messages) && messages[m->kind].sender == sender && messages[m->kind].when & now &&
	       fds == (messages[m->kind].fds ? messages[m->kind].fds(m) : 0);
}

/*
 * No other profiles will come: those that serve go on. After a SEAL the keeper cannot find out whether the door uses the new
 * numbers already: then both the old and the new profiles serve.
 */
static void lose_reader(struct keeper *k)
{
	fd_closep(&k->reader);
	if (k->offer.is_sealed)
		keeper_take_both(k);
	else
		keeper_drop_offer(k);
}

/* False when the door is gone, or a message breaks the protocol: *status is then the keeper's exit status. */
static bool receive_message(struct keeper *k, enum sender sender, int *status)
{
	static const char *const names[] = { [DOOR] = "door", [READER] = "reader" };
	struct keeper_message    message;
	int                fds[PACKET_FDS_MAX], r = -1;
	size_t             n;
	struct err         e;
	ssize_t got = packet_receive(sender == DOOR ? k->door : k->reader, &message, sizeof message, fds, ARRAY_LEN(fds), &n);

	*status = EXIT_SUCCESS;
	if (got == 0 && sender == READER)
		lose_reader(k);
	if (got == 0)
		return sender == READER;
	*status = EXIT_FAILURE;
	if (got != sizeof message)
		err_set(&e, ERR_PROTOCOL, "the %s's word has %zd bytes", names[sender], got);
	else if (!is_for_now(k, sender, &message, n))
		err_set(&e, ERR_PROTOCOL, "the %s's word of kind %u with %zu descriptors is not for now", names[sender],
			message.kind, n);
	else
		r = messages[message.kind].take(k, &message, fds, &e);
	packet_drop(fds, n);
	if (r < 0)
		keeper_complain(&e);
	return r == 0;
}

/* --- the loop --- */

/* The door, the reader, the parent of the groups, then a supervisor and a brig-proxy of each profile, then the control sockets of the cells. */
enum { GROUPS = READER + 1, FIRST_PROFILE, POLL_SET_MAX = FIRST_PROFILE + 2 * KEEPER_KEPT_PROFILES_MAX + KEEPER_CELLS_MAX };

struct poll_set {
	struct pollfd fds[POLL_SET_MAX];
	struct kept_cell *cell[POLL_SET_MAX];
	size_t        n;
};

static void poll_set_add(struct poll_set *l, int fd, struct kept_cell *cell)
{
	l->cell[l->n]  = cell;
	l->fds[l->n++] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

/*
 * Messages that the door sent before the reader's message are read first: they may name profiles that the reader's message retires.
 * After DOOR_FIRST of them, more than the socket can hold, the reader's message is read: a door that sends without end cannot delay it.
 */
static bool receive_in_order(struct keeper *k, bool door, bool reader, int *status)
{
	enum { DOOR_FIRST = 256 };

	door |= reader && packet_is_there(k->door); /* the door may have sent one after poll() returned */
	if (reader && (!door || k->reader_waits == DOOR_FIRST)) {
		k->reader_waits = 0;
		return receive_message(k, READER, status);
	}
	k->reader_waits += reader;
	return !door || receive_message(k, DOOR, status);
}

static void lend_again(struct keeper *k)
{
	char       events[4096];
	struct err e;

	while (read(k->parent_watch, events, sizeof events) > 0)
		;
	if (group_parent_lend(&k->parent, k->own.init_id, &e) < 0)
		keeper_complain(&e);
}

static bool poll_once(struct keeper *k, int wait, int *status)
{
	struct poll_set l;

	l.n = 0;
	poll_set_add(&l, k->door, NULL);
	poll_set_add(&l, k->reader, NULL);
	poll_set_add(&l, k->parent_watch, NULL);
	for (uint32_t i = 0; i < k->kept_top; i++) {
		poll_set_add(&l, k->kept[i].userns.supervisor, NULL);
		poll_set_add(&l, k->kept[i].proxy.pidfd, NULL);
	}
	for (size_t i = 0; i < k->top; i++)
		if (k->cell[i].control >= 0)
			poll_set_add(&l, k->cell[i].control, &k->cell[i]);
	if (poll(l.fds, l.n, wait) < 0)
		return errno == EINTR;
	if (l.fds[GROUPS].revents)
		lend_again(k);
	for (size_t i = FIRST_PROFILE + 2 * k->kept_top; i < l.n; i++)
		if (l.fds[i].revents)
			keeper_receive_cell(k, l.cell[i]);
	for (uint32_t i = 0; i < k->kept_top; i++) {
		if (l.fds[FIRST_PROFILE + 2 * i].revents)
			keeper_on_supervisor_end(&k->kept[i]);
		if (l.fds[FIRST_PROFILE + 2 * i + 1].revents)
			keeper_on_proxy_end(&k->kept[i]);
	}
	return receive_in_order(k, l.fds[DOOR].revents, l.fds[READER].revents, status);
}

/* Orphans of supervisors are children of the keeper, too (PR_SET_CHILD_SUBREAPER). */
static bool has_children(void)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		;
	return pid == 0;
}

/* Every cell dies when its control socket closes; then its groups can be removed. */
static void end(struct keeper *k)
{
	double     deadline = clock_ms(CLOCK_MONOTONIC) + END_MS_MAX;
	struct err ignored;

	for (size_t i = 0; i < k->top; i++)
		if (k->cell[i].state != KEPT_CELL_FREE)
			kept_cell_leave(&k->cell[i]);
	for (uint32_t i = 0; i < k->kept_top; i++) {
		k->kept[i].state = KEPT_PROFILE_RETIRED; /* may_rest() lets no entry rest any more */
		profile_userns_stop(&k->kept[i].userns);
		kept_proxy_stop(&k->kept[i].proxy);
	}
	while ((!keeper_clean(k) || has_children()) && clock_ms(CLOCK_MONOTONIC) < deadline)
		poll(NULL, 0, CLEAN_MS);
	(void)!group_close(&k->place, &ignored);
	group_parent_remove(&k->parent);
}

static void init(struct keeper *k)
{
	*k = (struct keeper){
		.door = KEEPER_FD, .reader = KEEPER_RULES_FD, .lock_fd = KEEPER_LOCK_FD, .own.fd = -1, .parent_watch = -1
	};
	for (size_t i = 0; i < KEEPER_CELLS_MAX; i++)
		k->cell[i] = KEPT_CELL_NONE;
	for (size_t i = 0; i < KEEPER_KEPT_PROFILES_MAX; i++)
		k->kept[i] = KEPT_PROFILE_NONE;
}

int keeper_main(void)
{
	struct keeper *k      = malloc(sizeof *k);
	int            status = EXIT_FAILURE;
	struct err     e;

	signal(SIGPIPE, SIG_IGN);
	umask(022);
	if (!k || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || privilege_hide(&e) < 0) {
		fprintf(stderr, "keeper: cannot begin: %m\n");
		return EXIT_FAILURE;
	}
	init(k);
	for (bool goes_on = true; goes_on;) {
		bool is_clean = keeper_clean(k);
		double cells = keeper_refill(k), proxies = keeper_tend_proxies(k);
		int    wait  = (int)(cells < proxies ? cells : proxies) + 1;

		keeper_clear_retired(k);
		goes_on = poll_once(k, is_clean ? wait : CLEAN_MS, &status);
	}
	end(k);
	free(k);
	return status;
}
