#define _GNU_SOURCE
#include "keeper.h"

#include "clock.h"
#include "fd.h"
#include "keeper_check.h"
#include "keeper_parts.h"
#include "packet.h"
#include "privilege.h"
#include "say.h"

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

void keeper_complain(const struct err *e)
{
	struct err said = *e;

	places_name_as_known(said.text);
	say("keeper: %s\n", said.text);
}

/* --- the door's words --- */

/* Is this a moment for that word? */
static bool is_welcome(const struct keeper *k, uint32_t kind)
{
	static const enum keeper_state when[] = {
		[KEEPER_SETUP] = KEEPER_BEGINS, [KEEPER_PROFILE] = KEEPER_LEARNS, [KEEPER_SEAL] = KEEPER_LEARNS,
		[KEEPER_RUN] = KEEPER_SERVES,   [KEEPER_RETURN] = KEEPER_SERVES,  [KEEPER_STATS] = KEEPER_SERVES,
	};

	return kind < ARRAY_LEN(when) && kind >= KEEPER_SETUP && when[kind] == k->state;
}

static int carry_out(struct keeper *k, const struct keeper_word *w, int *fds, struct err *e)
{
	switch ((enum keeper_kind)w->kind) {
	case KEEPER_SETUP:
		return keeper_take_setup(k, &w->setup, e);
	case KEEPER_PROFILE:
		return keeper_take_profile(k, &w->profile, &fds[0], e);
	case KEEPER_SEAL:
		return keeper_take_seal(k, e);
	case KEEPER_RUN:
		keeper_take_run(k, &w->run, fds);
		return 0;
	case KEEPER_RETURN:
		keeper_take_ticket_back(k, &w->seat);
		return 0;
	case KEEPER_STATS:
		keeper_answer_stats(k);
		return 0;
	case KEEPER_TICKET:
	case KEEPER_VOID:
		break; /* not welcome */
	}
	return 0;
}

/* False when the door is gone, or is not in its senses: *status is then the keeper's. */
static bool hear_door(struct keeper *k, int *status)
{
	struct keeper_word word;
	int                fds[PACKET_FDS_MAX], r = -1;
	size_t             n;
	struct err         e;
	ssize_t            got = packet_receive(k->door, &word, sizeof word, fds, ARRAY_LEN(fds), &n);

	*status = EXIT_SUCCESS;
	if (got == 0)
		return false;
	*status = EXIT_FAILURE;
	if (got != sizeof word)
		err_set(&e, ERR_PROTOCOL, "the door's word has %zd bytes", got);
	else if (!is_welcome(k, word.kind) || keeper_word_fds(&word) != (int)n)
		err_set(&e, ERR_PROTOCOL, "the door's word of kind %u with %zu descriptors is not for now", word.kind, n);
	else
		r = carry_out(k, &word, fds, &e);
	for (size_t i = 0; i < n; i++)
		fd_closep(&fds[i]);
	if (r < 0)
		keeper_complain(&e);
	return r == 0;
}

/* --- the loop --- */

/* The door, then the spawners, then the launchers that there are. */
struct listening {
	struct pollfd fds[1 + KEEPER_PROFILES_MAX + KEEPER_CELLS_MAX];
	struct seat  *seat[1 + KEEPER_PROFILES_MAX + KEEPER_CELLS_MAX];
	size_t        n;
};

static void listen_to(struct listening *l, int fd, struct seat *seat)
{
	l->seat[l->n]  = seat;
	l->fds[l->n++] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

static bool attend(struct keeper *k, int wait, int *status)
{
	struct listening l;

	l.n = 0;
	listen_to(&l, k->door, NULL);
	for (uint32_t i = 0; i < k->posts; i++)
		listen_to(&l, k->post[i].realm.spawner, NULL);
	for (size_t i = 0; i < k->top; i++)
		if (k->seat[i].control >= 0)
			listen_to(&l, k->seat[i].control, &k->seat[i]);
	if (poll(l.fds, l.n, wait) < 0)
		return errno == EINTR;
	for (size_t i = 1 + k->posts; i < l.n; i++)
		if (l.fds[i].revents)
			keeper_hear_launcher(k, l.seat[i]);
	for (uint32_t i = 0; i < k->posts; i++)
		if (l.fds[1 + i].revents)
			keeper_hear_spawner(&k->post[i]);
	return !l.fds[0].revents || hear_door(k, status);
}

/* Orphans of spawners are children of the keeper, too (PR_SET_CHILD_SUBREAPER). */
static bool has_children(void)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		;
	return pid == 0;
}

/* Every cell dies with its control socket; then its groups can go. */
static void end(struct keeper *k)
{
	double deadline = clock_ms(CLOCK_MONOTONIC) + END_MS_MAX;

	for (size_t i = 0; i < k->top; i++)
		if (k->seat[i].state != SEAT_FREE)
			seat_leave(&k->seat[i]);
	for (uint32_t i = 0; i < k->posts; i++)
		realm_stop(&k->post[i].realm);
	while ((!keeper_clean(k) || has_children()) && clock_ms(CLOCK_MONOTONIC) < deadline)
		poll(NULL, 0, CLEAN_MS);
	group_home_remove(&k->home);
}

static void init(struct keeper *k, int self_fd)
{
	*k = (struct keeper){ .door = KEEPER_FD, .lock_fd = KEEPER_LOCK_FD, .self_fd = self_fd, .own.fd = -1 };
	for (size_t i = 0; i < KEEPER_CELLS_MAX; i++)
		k->seat[i] = SEAT_NONE;
	for (size_t i = 0; i < KEEPER_PROFILES_MAX; i++)
		k->post[i] = (struct post){ .filter_fd = -1, .realm = REALM_NONE, .tree = STORE_TREE_NONE };
}

int keeper_main(int self_fd)
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
	init(k, self_fd);
	for (bool goes_on = true; goes_on;) {
		bool is_clean = keeper_clean(k);
		int  wait     = (int)keeper_refill(k) + 1;

		goes_on = attend(k, is_clean ? wait : CLEAN_MS, &status);
	}
	end(k);
	free(k);
	return status;
}
