/* monitor_rules.c - messages of the reader: the profiles that are served, at the start and after each reload */
#include "monitor_check.h"
#include "monitor_parts.h"

#include "fd.h"
#include "cg_sweep.h"
#include "packet.h"
#include "privilege.h"
#include "proxy_protocol.h"
#include "sealed.h"

#include <linux/filter.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

int monitor_handle_setup(struct monitor *k, const struct monitor_message *m, int *fds, struct err *e)
{
	(void)fds;
	if (monitor_check_setup(&m->setup, e) < 0)
		return -1;
	k->setup = m->setup;
	k->state = MONITOR_LEARNS;
	return 0;
}

/* --- a profile --- */

/* Both are sealed, and no longer than a filter may be. */
static bool are_filter_files_equal(int a, int b)
{
	enum { BYTES = MONITOR_FILTER_MAX * sizeof(struct sock_filter) };
	char   *text = malloc(2 * BYTES);
	ssize_t n    = text ? pread(a, text, BYTES, 0) : -1;
	bool    same = n > 0 && pread(b, text + BYTES, BYTES, 0) == n && memcmp(text, text + BYTES, (size_t)n) == 0;

	free(text);
	return same;
}

/* The serving profile that is equal to what the reader sent; else NULL. */
static struct monitored_profile *find_unchanged_profile(struct monitor *k, const struct monitor_profile *plan, int filter_fd)
{
	for (uint32_t i = 0; i < k->monitored_top; i++) {
		struct monitored_profile *p = &k->kept[i];

		if (p->state == MONITORED_PROFILE_SERVING && memcmp(&p->plan, plan, sizeof *plan) == 0 &&
		    are_filter_files_equal(p->filter_fd, filter_fd))
			return p;
	}
	return NULL;
}

/* The monitor only passes these files on, so it checks nothing but their seals and sizes. */
static int check_profile_files(const struct monitor_profile *plan, const int *fds, struct err *e)
{
	size_t len;

	if (sealed_check(fds[0], MONITOR_FILTER_MAX * sizeof(struct sock_filter), &len, e) < 0)
		return err_wrap(e, "filter");
	if (!len || len % sizeof(struct sock_filter))
		return err_set(e, ERR_PROTOCOL, "filter: %zu bytes are no program", len);
	if (plan->has_network && sealed_check(fds[1], sizeof(struct proxy_config), &len, e) < 0)
		return err_wrap(e, "network");
	if (plan->has_network && len != sizeof(struct proxy_config))
		return err_set(e, ERR_PROTOCOL, "network: %zu bytes are no configuration of brig-proxy", len);
	return plan->has_trust && sealed_check(fds[2], MONITOR_TRUST_MAX, &len, e) < 0 ? err_wrap(e, "certificates") : 0;
}

static struct monitored_profile *add_offered_profile(struct monitor *k, const struct monitor_profile *plan, int *fds)
{
	struct monitored_profile *p = k->kept;

	while (p < k->kept + MONITOR_ALL_PROFILES_MAX && p->state != MONITORED_PROFILE_FREE)
		p++;
	if (p == k->kept + MONITOR_ALL_PROFILES_MAX) {
		err_set(&k->offer.refused, ERR_LIMIT,
			"profile %s: there are %d profiles with those of before whose runs go on; wait for their end", plan->name,
			MONITOR_ALL_PROFILES_MAX);
		return NULL;
	}
	*p           = MONITORED_PROFILE_NONE;
	p->state     = MONITORED_PROFILE_OFFERED;
	p->plan      = *plan;
	p->filter_fd = fd_take(&fds[0]);
	if (plan->has_network)
		p->proxy.config_fd = fd_take(&fds[1]);
	if (plan->has_trust)
		p->trust_fd = fd_take(&fds[2]);
	if (p >= k->kept + k->monitored_top)
		k->monitored_top = (uint32_t)(p - k->kept) + 1;
	return p;
}

int monitor_handle_profile(struct monitor *k, const struct monitor_message *m, int *fds, struct err *e)
{
	const struct monitor_profile *plan = &m->profile;
	struct kept_offer        *t = &k->offer;
	struct monitored_profile *p;

	if (t->n == MONITOR_PROFILES_MAX)
		return err_set(e, ERR_PROTOCOL, "more than %d profiles", MONITOR_PROFILES_MAX);
	if (monitor_check_profile(plan, e) < 0 || check_profile_files(plan, fds, e) < 0)
		return -1;
	p = find_unchanged_profile(k, plan, fds[0]);
	p = p ? p : add_offered_profile(k, plan, fds);
	if (!p)
		return 0; /* the answer to SEAL has the reason */
	p->is_offered     = true;
	t->number[t->n++] = (uint32_t)(p - k->kept);
	return 0;
}

/* --- at the first SEAL --- */

/* Inside a plain user's namespace the owners of files look the same, so the trees were opened before. */
static int set_up_id_range(struct monitor *k, struct err *e)
{
	if (k->setup.mode == MONITOR_USER) {
		int r = privilege_make_dumpable(e) < 0 ? -1 : rootless_enter(&k->rootless, e); /* newuidmap writes to the monitor's files in /proc */

		k->ids = k->rootless.ids;
		return privilege_make_undumpable(e) < 0 ? -1 : r;
	}
	k->rootless.kind = ROOTLESS_KEPT;
	k->ids        = (struct id_range){ .base = k->setup.id_base, .count = k->setup.id_count };
	return 0;
}

/* All leaves in a service's parent group are the monitor's; in a plain user's, other runs of that user have some, too. */
static int open_cgroup_parent(struct monitor *k, struct err *e)
{
	bool       is_service = k->rootless.kind == ROOTLESS_KEPT;
	struct err ignored;

	if (!is_service && slot_take_free(k->setup.runtime, &k->ids, id_range_reserve(&k->ids), &k->own, e) < 0)
		return -1;
	if (is_service) { /* the control groups that the monitor makes belong to group 0 of every P */
		k->own.init_id = k->ids.base + id_range_reserve(&k->ids) * IDS_PER_CELL;
		if (privilege_set_fs_group(k->own.init_id) < 0)
			return err_sys(e, "group of the profiles (CAP_SETGID is needed)");
	}
	cg_parent_open(&k->parent, k->setup.runtime);
	cg_parent_keep_open(&k->parent);
	if (is_service)
		k->parent_watch = cg_parent_watch(&k->parent);
	if (is_service && cg_parent_lend_to_gid(&k->parent, k->own.init_id, e) < 0)
		return -1;
	cg_parent_sweep_leftovers(&k->parent, is_service ? NULL : &k->own);
	if (cg_make_in_parent(&k->proxies, &k->parent, is_service ? id_range_reserve(&k->ids) : k->own.number, &ignored) != CG_MADE)
		return 0; /* without groups there is nothing to hold */
	return cg_limit_proxy_group(&k->proxies, e);
}

/*
 * Makes a share for each profile. If all runs together could not use up one share, makes more of them, for profiles
 * that come later: the share of a namespace that exists cannot be made smaller.
 */
static void divide_ids_into_shares(struct monitor *k)
{
	enum { ENOUGH = MONITOR_RUNS_MAX + 2 * MONITOR_READY_MAX };
	uint32_t most = id_range_reserve(&k->ids) / ENOUGH;

	k->shares = MONITOR_ALL_PROFILES_MAX;
	if (k->rootless.kind == ROOTLESS_KEPT)
		k->shares = most > MONITOR_PROFILES_MAX ? MONITOR_PROFILES_MAX : most > k->offer.n ? most : k->offer.n;
	for (uint32_t i = 0; i < k->shares; i++)
		if (k->rootless.kind == ROOTLESS_KEPT)
			id_share_init_slice(&k->share[i], &k->ids, i, k->shares, k->lock_fd);
		else
			id_share_init_whole_range(&k->share[i], &k->ids, k->setup.runtime);
}

static int set_up_on_first_seal(struct monitor *k, struct err *e)
{
	struct err ignored;

	for (uint32_t i = 0; i < k->monitored_top; i++)
		if (k->kept[i].state == MONITORED_PROFILE_OFFERED)
			(void)!monitor_open_rootfs(k, i, &ignored); /* a rootfs that is missing is an error of each run */
	if (set_up_id_range(k, e) < 0 || open_cgroup_parent(k, e) < 0)
		return -1;
	divide_ids_into_shares(k);
	signal(SIGCHLD, SIG_IGN); /* the kernel reaps supervisors and orphans of killed ones; the status of newuidmap was needed before */
	k->state = MONITOR_SERVES;
	return 0;
}

/* --- the profiles that were sent --- */

static bool is_id_share_in_use(const struct monitor *k, const struct share *s)
{
	for (uint32_t i = 0; i < k->monitored_top; i++)
		if (k->kept[i].userns.share == s)
			return true;
	return false;
}

/* The share of this name, even while it is in use; else one that is not in use. */
static struct share *find_id_share(struct monitor *k, const char *name)
{
	struct share *unused = NULL;

	for (uint32_t i = 0; i < k->shares; i++) {
		if (strcmp(k->share[i].name, name) == 0)
			return &k->share[i];
		if (!unused && !is_id_share_in_use(k, &k->share[i]))
			unused = &k->share[i];
	}
	return unused;
}

static int start_profile_processes(struct monitor *k, uint32_t number, struct err *e)
{
	struct monitored_profile *p = &k->kept[number];
	struct share *s = find_id_share(k, p->plan.name);

	if (!s)
		return err_set(e, ERR_LIMIT, "profile %s: all %u shares of the host ids are in use; a restart divides them anew",
			       p->plan.name, k->shares);
	memcpy(s->name, p->plan.name, sizeof s->name);
	p->userns.share = s;
	return monitor_start_proxy(k, number, e) < 0 ? -1 : monitor_start_supervisor(k, number, e);
}

static int start_offered_profiles(struct monitor *k, struct err *e)
{
	if (k->offer.refused.kind != ERR_NONE) {
		*e = k->offer.refused;
		return -1;
	}
	for (uint32_t i = 0; i < k->monitored_top; i++)
		if (k->kept[i].state == MONITORED_PROFILE_OFFERED && start_profile_processes(k, i, e) < 0)
			return -1;
	return 0;
}

/* A failure at the start ends the monitor; later, the profiles that serve go on. */
int monitor_handle_seal(struct monitor *k, const struct monitor_message *m, int *fds, struct err *e)
{
	bool                  is_first = k->state == MONITOR_LEARNS;
	struct monitor_answer answer;
	int                   r = (is_first && set_up_on_first_seal(k, e) < 0) || start_offered_profiles(k, e) < 0 ? -1 : 0;

	(void)fds;
	memset(&answer, 0, sizeof answer);
	answer.kind         = MONITOR_SEAL;
	answer.seal.reading = m->reading;
	if (r < 0)
		answer.err = *e;
	else
		memcpy(answer.seal.number, k->offer.number, sizeof answer.seal.number);
	k->offer.is_sealed = r == 0;
	if (packet_send_nowait(k->reader, &answer, sizeof answer, NULL, 0) < 0 && is_first && r == 0)
		return err_set(e, ERR_SETUP, "the reader cannot be reached");
	return is_first ? r : 0;
}

static void clear_profile_offer(struct monitor *k)
{
	for (uint32_t i = 0; i < k->monitored_top; i++)
		k->kept[i].is_offered = false;
	k->offer = (struct kept_offer){ .n = 0 };
}

static void retire_profile(struct monitor *k, uint32_t number)
{
	k->kept[number].state = MONITORED_PROFILE_RETIRED;
	monitor_drop_waiting_cells(k, number);
}

int monitor_handle_serve(struct monitor *k, const struct monitor_message *m, int *fds, struct err *e)
{
	(void)m, (void)fds, (void)e;
	for (uint32_t i = 0; i < k->monitored_top; i++)
		if (k->kept[i].state == MONITORED_PROFILE_OFFERED)
			k->kept[i].state = MONITORED_PROFILE_SERVING;
		else if (k->kept[i].state == MONITORED_PROFILE_SERVING && !k->kept[i].is_offered)
			retire_profile(k, i);
	clear_profile_offer(k);
	return 0;
}

void monitor_serve_old_and_new_profiles(struct monitor *k)
{
	for (uint32_t i = 0; i < k->monitored_top; i++)
		if (k->kept[i].state == MONITORED_PROFILE_OFFERED)
			k->kept[i].state = MONITORED_PROFILE_SERVING;
	clear_profile_offer(k);
}

/* Retires them, because the server may have used them by now, though it should not. */
void monitor_retire_offered_profiles(struct monitor *k)
{
	for (uint32_t i = 0; i < k->monitored_top; i++)
		if (k->kept[i].state == MONITORED_PROFILE_OFFERED)
			retire_profile(k, i);
	clear_profile_offer(k);
}

int monitor_handle_drop(struct monitor *k, const struct monitor_message *m, int *fds, struct err *e)
{
	(void)m, (void)fds, (void)e;
	monitor_retire_offered_profiles(k);
	return 0;
}

bool monitor_is_profile_served(const struct monitor *k, uint32_t number)
{
	return number < k->monitored_top && (k->kept[number].state == MONITORED_PROFILE_SERVING ||
					(k->kept[number].state == MONITORED_PROFILE_OFFERED && k->offer.is_sealed));
}

/* --- retired profiles --- */

static bool profile_has_cells(const struct monitor *k, uint32_t number)
{
	for (size_t i = 0; i < k->top; i++)
		if (k->cell[i].state != MONITORED_CELL_FREE && k->cell[i].profile == number)
			return true;
	return false;
}

void monitor_free_retired_profiles(struct monitor *k)
{
	for (uint32_t i = 0; i < k->monitored_top; i++) {
		struct monitored_profile *p = &k->kept[i];

		if (p->state != MONITORED_PROFILE_RETIRED || profile_has_cells(k, i))
			continue;
		profile_userns_kill(&p->userns);
		store_close(&p->tree);
		monitored_proxy_shut_down(&p->proxy);
		fd_closep(&p->proxy.config_fd);
		fd_closep(&p->trust_fd);
		fd_closep(&p->filter_fd);
		*p = MONITORED_PROFILE_NONE;
	}
	while (k->monitored_top && k->kept[k->monitored_top - 1].state == MONITORED_PROFILE_FREE)
		k->monitored_top--;
}
