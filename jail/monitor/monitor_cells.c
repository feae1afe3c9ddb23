/* monitor_cells.c - profiles at work, and cells that stand ready */
#define _GNU_SOURCE
#include "monitor_parts.h"

#include "cell_fit.h"
#include "clock.h"
#include "packet.h"
#include "profile_warm.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { BACKOFF_MS = 1000, BACKOFF_MS_MAX = 60000, START_MS = 20, REFILL_MS_MAX = 60000 };

/* --- one profile --- */

int monitor_start_supervisor(struct monitor *k, uint32_t number, struct err *e)
{
	struct monitored_profile               *p = &k->kept[number];
	const struct profile_userns_options w = {
		.setup     = &k->setup,
		.profile   = &p->plan,
		.rootless  = &k->rootless,
		.gid       = k->own.init_id,
		.lock_fd   = k->lock_fd,
		.filter_fd = p->filter_fd,
		.trust_fd  = p->trust_fd,
	};

	return p->userns.supervisor >= 0 ? 0 : profile_userns_start(&p->userns, &w, e);
}

static bool is_cell_waiting_for_run(const struct monitored_cell *s)
{
	return s->is_for_any_run && !s->leaves_after_lease && (s->state == MONITORED_CELL_READY || s->state == MONITORED_CELL_BUILDING);
}

/* The server may have used the lease a moment ago: a cell whose lease is out ends when the lease is returned. */
void monitor_drop_waiting_cells(struct monitor *k, uint32_t number)
{
	for (size_t i = 0; i < k->top; i++) {
		struct monitored_cell *s = &k->cell[i];

		if (s->profile != number || !is_cell_waiting_for_run(s))
			continue;
		s->leaves_after_lease = true;
		monitor_recall_lease(k, s);
		if (!s->lease_is_out)
			monitored_cell_close_control(s);
	}
}

/* From another profile, whose tree was opened before the monitor entered its user namespace, where owners are hidden. */
static bool dup_open_rootfs_tree(const struct monitor *k, const char *rootfs, struct store_tree *ret)
{
	for (uint32_t i = 0; i < k->monitored_top && k->rootless.kind != ROOTLESS_KEPT; i++) {
		const struct monitored_profile *p = &k->kept[i];

		if (p->tree.tree_fd < 0 || strcmp(p->plan.rootfs, rootfs) != 0)
			continue;
		*ret         = p->tree;
		ret->tree_fd = fcntl(p->tree.tree_fd, F_DUPFD_CLOEXEC, 0);
		ret->lock_fd = p->tree.lock_fd < 0 ? -1 : fcntl(p->tree.lock_fd, F_DUPFD_CLOEXEC, 0);
		return ret->tree_fd >= 0;
	}
	return false;
}

/*
 * Opens the tree again when the rootfs was built anew; cells that wait with the old tree are dropped. A plain user's
 * monitor goes on using the trees of its start.
 */
int monitor_open_rootfs(struct monitor *k, uint32_t number, struct err *e)
{
	struct monitored_profile *p        = &k->kept[number];
	const char         *store[2] = { k->setup.store[0], k->setup.store[1] };
	struct timespec     rootfs_since = { 0 }; /* when there is no such name */
	struct store_tree   tree;

	store_get_name_time(store, p->plan.rootfs, &rootfs_since);
	if (p->tree.tree_fd >= 0 && (k->rootless.kind != ROOTLESS_KEPT || memcmp(&rootfs_since, &p->rootfs_since, sizeof rootfs_since) == 0))
		return 0;
	if (!dup_open_rootfs_tree(k, p->plan.rootfs, &tree) && store_open_tree_in_first(store, p->plan.rootfs, &tree, e) < 0)
		return -1;
	monitor_drop_waiting_cells(k, number);
	store_close(&p->tree);
	p->tree  = tree;
	p->rootfs_since = rootfs_since;
	return 0;
}

/* --- one cell --- */

/* For how many cells so many descriptors are enough. */
static size_t cells_for_fd_limit(rlim_t files, rlim_t beside, rlim_t each)
{
	rlim_t n = files > beside ? (files - beside) / each : 0;

	return n < MONITOR_CELLS_MAX ? (size_t)n : MONITOR_CELLS_MAX;
}

/*
 * How many cells the monitor can hold, and how many one supervisor can watch, which has some fifty descriptors for
 * each and raises its limit to the hard one. Some descriptors stay free for those that the server sends: a message
 * that arrived without its descriptors would end the monitor.
 */
static void compute_cell_limits(const struct monitor *k, size_t *cells, size_t *watched)
{
	enum { OF_CELL = 2 + CG_TREES_MAX, OF_PROFILE = 10 /* with a network */, BESIDE = 10 + CG_TREES_MAX + PACKET_FDS_MAX };
	enum { OF_WATCHED = 56, BESIDE_WATCHED = 64 };
	struct rlimit files = { 0 };

	(void)!getrlimit(RLIMIT_NOFILE, &files);
	*cells   = cells_for_fd_limit(files.rlim_cur, BESIDE + k->monitored_top * OF_PROFILE, OF_CELL);
	*watched = cells_for_fd_limit(files.rlim_max, BESIDE_WATCHED, OF_WATCHED);
}

/* Neither in another rootfs nor in another profile can its place be used. */
static bool is_resting_for_profile(const struct monitor *k, const struct monitored_cell *s, uint32_t number)
{
	return s->state == MONITORED_CELL_RESTING && s->profile == number &&
	       memcmp(&s->rootfs_since, &k->kept[number].rootfs_since, sizeof s->rootfs_since) == 0;
}

/*
 * Of resting entries, the one that has rested longest: by then the kernel has freed memory of its groups that it
 * frees late. All entries from the top on are free, so only the first of them is looked at.
 */
static struct monitored_cell *find_best_cell_entry(struct monitor *k, uint32_t number, size_t cells)
{
	enum { NO_USE, OF_ANOTHER, IS_FREE, OF_PROFILE } fit, most = NO_USE;
	struct monitored_cell *best = NULL;

	for (size_t i = 0; i < cells && i <= k->top; i++) {
		struct monitored_cell *s = &k->cell[i];

		fit = NO_USE;
		if (s->state == MONITORED_CELL_FREE)
			fit = IS_FREE;
		else if (s->state == MONITORED_CELL_RESTING)
			fit = is_resting_for_profile(k, s, number) ? OF_PROFILE : OF_ANOTHER;
		if (fit > most || (fit == most && best && s->since < best->since)) {
			best = s;
			most = fit;
		}
	}
	return best;
}

/* A resting entry that cannot be used again is cleaned, and the search begins anew. *renewed: as leaves_are_new. */
static struct monitored_cell *find_or_renew_cell_entry(struct monitor *k, uint32_t number, size_t cells, bool *renewed)
{
	struct monitored_cell *s;

	*renewed = false;
	while ((s = find_best_cell_entry(k, number, cells)) && s->state == MONITORED_CELL_RESTING &&
	       !(is_resting_for_profile(k, s, number) && cg_renew_for_next_cell(&s->group, renewed))) {
		monitored_cell_close_control(s);
		(void)monitored_cell_clean_up(s);
	}
	return s;
}

struct monitored_cell *monitor_open_cell(struct monitor *k, uint32_t number, const struct monitor_run *run, const int *shown_fd,
				   struct err *e)
{
	struct monitored_profile     *p = &k->kept[number];
	size_t                        cells, watched, used = 0, waiting = 0;
	struct monitored_cell        *cell = NULL;
	bool                          fits, is_free, rested;
	struct monitored_cell_options w = {
		.tree     = &p->tree,
		.userns   = &p->userns,
		.parent   = &k->parent,
		.limits   = run ? &run->order.limits : &p->plan.limits,
		.rootfs_since = p->rootfs_since,
		.run      = run,
		.shown_fd = shown_fd,
		.warm     = p->plan.warm != WARM_NEVER && (!run || !run->order.head.executes),
		.lends    = k->rootless.kind == ROOTLESS_KEPT,
	};

	compute_cell_limits(k, &cells, &watched);
	for (size_t i = 0; i < k->top; i++) {
		enum monitored_cell_state state = k->cell[i].state;

		used += k->cell[i].profile == number &&
			(state == MONITORED_CELL_BUILDING || state == MONITORED_CELL_READY || state == MONITORED_CELL_TAKEN);
		waiting += is_cell_waiting_for_run(&k->cell[i]);
	}
	fits = watched >= cells || used < watched;
	is_free = run || waiting < MONITOR_CELLS_MAX - MONITOR_RUNS_MAX; /* entries for as many runs stay free */
	do { /* again if a place rested in a supervisor that has ended, of which the monitor has not read yet */
		cell   = fits && is_free ? find_or_renew_cell_entry(k, number, cells, &w.leaves_are_new) : NULL;
		rested = cell && cell->state == MONITORED_CELL_RESTING;
	} while (rested && monitored_cell_open(cell, number, &w, e) < 0);
	if (!cell) {
		cells = fits ? cells : watched;
		err_set(e, ERR_LIMIT, "%zu cells are in use, and there %s", cells,
			cells < MONITOR_CELLS_MAX ? "are no descriptors for more (LimitNOFILE= of brigd.service, or ulimit -n)"
						 : "is no room for more");
		return NULL;
	}
	if (!rested && (monitor_start_supervisor(k, number, e) < 0 || monitored_cell_open(cell, number, &w, e) < 0))
		return NULL;
	cell->generation = ++k->made;
	if (cell >= k->cell + k->top)
		k->top = (size_t)(cell - k->cell) + 1;
	return cell;
}

/* --- cells that wait --- */

struct monitored_cell *monitor_find_waiting_cell(struct monitor *k, const struct monitor_run *run)
{
	const struct limits   *built    = &k->kept[run->profile].plan.limits;
	struct monitored_cell *building = NULL;

	for (size_t i = 0; i < k->top; i++) {
		struct monitored_cell *s = &k->cell[i];

		if ((s->state != MONITORED_CELL_READY && (s->state != MONITORED_CELL_BUILDING || building)) || s->lease_is_out ||
		    s->profile != run->profile || !s->is_for_any_run ||
		    cell_fit_of_limits(&run->order.limits, built, s->warm, s->group.missing) == CELL_FIT_NONE)
			continue;
		if (s->state == MONITORED_CELL_READY)
			return s;
		building = s;
	}
	return run->order.head.code_len ? building : NULL; /* a command needs no zygote, and does not wait for one */
}

static uint32_t count_waiting_cells(const struct monitor *k, uint32_t number)
{
	uint32_t n = 0;

	for (size_t i = 0; i < k->top; i++)
		n += k->cell[i].profile == number && is_cell_waiting_for_run(&k->cell[i]);
	return n;
}

/*
 * A run that has just begun needs the CPU more than cells for later runs do, and most runs are over soon. Returns in
 * how many ms to build again.
 */
static double refill_delay_after_run_start(const struct monitor *k)
{
	double now = clock_ms(CLOCK_MONOTONIC), wait = 0;

	for (size_t i = 0; i < k->top; i++)
		if (k->cell[i].state == MONITORED_CELL_TAKEN && k->cell[i].since + START_MS - now > wait)
			wait = k->cell[i].since + START_MS - now;
	return wait;
}

static void back_off_profile_refill(struct monitored_profile *p, const struct err *why)
{
	struct err message = *why;

	err_wrap(&message, "no cell stands ready for profile %s", p->plan.name);
	if (p->backoff == 0)
		monitor_log_error(&message);
	p->backoff    = p->backoff == 0 ? BACKOFF_MS : p->backoff * 2 > BACKOFF_MS_MAX ? BACKOFF_MS_MAX : p->backoff * 2;
	p->not_before = clock_ms(CLOCK_MONOTONIC) + p->backoff;
}

static void refill_profile_cells(struct monitor *k, uint32_t number)
{
	struct monitored_profile *p = &k->kept[number];
	struct err   e;

	for (uint32_t have = count_waiting_cells(k, number); have < p->plan.ready; have++)
		if (monitor_open_rootfs(k, number, &e) < 0 || !monitor_open_cell(k, number, NULL, NULL, &e)) {
			back_off_profile_refill(p, &e);
			return;
		}
}

double monitor_refill_ready_cells(struct monitor *k)
{
	double now = clock_ms(CLOCK_MONOTONIC), busy = refill_delay_after_run_start(k), wait = REFILL_MS_MAX;

	for (uint32_t i = 0; i < k->monitored_top; i++) {
		double left = k->kept[i].not_before - now;

		if (k->kept[i].state != MONITORED_PROFILE_SERVING)
			continue;
		if (left < busy)
			left = count_waiting_cells(k, i) < k->kept[i].plan.ready ? busy : wait;
		if (left <= 0)
			refill_profile_cells(k, i);
		else if (left < wait)
			wait = left;
	}
	return wait;
}

/* --- messages and ends of supervisors --- */

/*
 * The next cell in the place of another gets a generation of its own. False: it is not wanted. Since it was built the
 * profile may have been retired, or its rootfs built anew, or enough other cells may wait. It has no lease while
 * there is no zygote.
 */
static bool accept_next_cell(struct monitor *k, struct monitored_cell *s)
{
	const struct monitored_profile *p = &k->kept[s->profile];

	s->generation         = ++k->made;
	s->ready_is_next_cell = false;
	return p->state == MONITORED_PROFILE_SERVING && memcmp(&s->rootfs_since, &p->rootfs_since, sizeof s->rootfs_since) == 0 &&
	       count_waiting_cells(k, s->profile) <= p->plan.ready;
}

/*
 * s rests already. As many entries rest as the profile has ready cells, and MORE; after a crowd of runs the others are
 * removed. In a profile that is never warm no run gets anything that another run has had. A plain user's ids are also
 * used by other runs of that user, so they do not rest.
 */
static bool may_keep_groups_for_next_cell(const struct monitor *k, const struct monitored_cell *s)
{
	enum { MORE = 8 };
	const struct monitored_profile *p = &k->kept[s->profile];
	uint32_t                        n = 0;

	for (size_t i = 0; i < k->top; i++)
		n += is_resting_for_profile(k, &k->cell[i], s->profile);
	return is_resting_for_profile(k, s, s->profile) && k->rootless.kind == ROOTLESS_KEPT && p->plan.warm != WARM_NEVER &&
	       p->state == MONITORED_PROFILE_SERVING && n <= p->plan.ready + MORE;
}

void monitor_receive_cell_message(struct monitor *k, struct monitored_cell *s)
{
	struct err e;
	bool       was_waiting = is_cell_waiting_for_run(s);
	int        lease[LEASE_FDS];
	size_t     n;

	if (monitored_cell_receive_message(s, lease, &n, &e)) {
		if (e.kind != ERR_NONE && was_waiting)
			back_off_profile_refill(&k->kept[s->profile], &e);
		else if (s->state == MONITORED_CELL_READY)
			k->kept[s->profile].backoff = 0;
		if ((s->ready_is_next_cell && !accept_next_cell(k, s)) || (s->state == MONITORED_CELL_RESTING && !may_keep_groups_for_next_cell(k, s)) ||
		    (s->leaves_after_lease && s->state == MONITORED_CELL_READY && !s->lease_is_out)) {
			packet_close_fds(lease, n);
			monitored_cell_close_control(s);
		} else if (n) {
			monitor_send_lease(k, s, lease);
		}
		return;
	}
	monitor_recall_lease(k, s);
	/* The supervisor was killed, and sent no reason. */
	if (was_waiting && clock_ms(CLOCK_MONOTONIC) >= k->kept[s->profile].not_before) {
		err_set(&e, ERR_SETUP, "the supervisor ended before the cell was used");
		back_off_profile_refill(&k->kept[s->profile], &e);
	}
	monitored_cell_close_control(s);
}

void monitor_handle_supervisor_exit(struct monitored_profile *p)
{
	struct err e;

	profile_userns_kill(&p->userns); /* it sends nothing over this socket: this is end of file */
	err_set(&e, ERR_SETUP, "the supervisor of profile %s ended; another one is started when it is needed", p->plan.name);
	monitor_log_error(&e);
}

bool monitor_clean_up_cells(struct monitor *k)
{
	bool left = false;

	for (size_t i = 0; i < k->top; i++) {
		struct monitored_cell *s = &k->cell[i];

		if (s->state == MONITORED_CELL_READY && s->leaves_after_lease) {
			monitor_recall_lease(k, s);
			left |= !s->recall_was_sent;
		}
		if (s->state == MONITORED_CELL_RESTING &&
		    (k->kept[s->profile].state != MONITORED_PROFILE_SERVING || !is_resting_for_profile(k, s, s->profile)))
			monitored_cell_close_control(s);
		if (s->state == MONITORED_CELL_LEAVING)
			left |= !monitored_cell_clean_up(s);
	}
	while (k->top && k->cell[k->top - 1].state == MONITORED_CELL_FREE)
		k->top--;
	return !left;
}
