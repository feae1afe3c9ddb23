/* keeper_rules.c - messages of the reader: the profiles that are served, at the start and after each reload */
#include "keeper_check.h"
#include "keeper_parts.h"

#include "fd.h"
#include "group_sweep.h"
#include "packet.h"
#include "privilege.h"
#include "sealed.h"

#include <linux/filter.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

int keeper_take_setup(struct keeper *k, const struct keeper_setup *setup, struct err *e)
{
	if (keeper_check_setup(setup, e) < 0)
		return -1;
	k->setup = *setup;
	k->state = KEEPER_LEARNS;
	return 0;
}

/* --- a profile --- */

static int check_filter(int fd, struct err *e)
{
	size_t len;

	if (sealed_check(fd, KEEPER_FILTER_MAX * sizeof(struct sock_filter), &len, e) < 0)
		return err_wrap(e, "filter");
	return len && len % sizeof(struct sock_filter) == 0 ? 0 : err_set(e, ERR_PROTOCOL, "filter: %zu bytes are no program", len);
}

/* Sealed, and no longer than a filter may be. */
static bool has_same_bytes(int a, int b)
{
	enum { BYTES = KEEPER_FILTER_MAX * sizeof(struct sock_filter) };
	char   *text = malloc(2 * BYTES);
	ssize_t n    = text ? pread(a, text, BYTES, 0) : -1;
	bool    same = n > 0 && pread(b, text + BYTES, BYTES, 0) == n && memcmp(text, text + BYTES, (size_t)n) == 0;

	free(text);
	return same;
}

/* One that serves and is equal to what the reader sent; else NULL. */
static struct post *find_same(struct keeper *k, const struct keeper_profile *plan, int filter_fd)
{
	for (uint32_t i = 0; i < k->posts; i++) {
		struct post *p = &k->post[i];

		if (p->state == POST_SERVING && memcmp(&p->plan, plan, sizeof *plan) == 0 && has_same_bytes(p->filter_fd, filter_fd))
			return p;
	}
	return NULL;
}

static struct post *find_free(struct keeper *k)
{
	for (uint32_t i = 0; i < KEEPER_POSTS_MAX; i++)
		if (k->post[i].state == POST_FREE)
			return &k->post[i];
	return NULL;
}

static struct post *learn(struct keeper *k, const struct keeper_profile *plan, int *filter_fd)
{
	struct post *p = find_free(k);

	if (!p) {
		err_set(&k->telling.refused, ERR_LIMIT, "profile %s: there are %d profiles with those of before whose runs go on; wait for their end", plan->name,
			KEEPER_POSTS_MAX);
		return NULL;
	}
	*p           = POST_NONE;
	p->state     = POST_LEARNED;
	p->plan      = *plan;
	p->filter_fd = fd_take(filter_fd);
	if (p >= k->post + k->posts)
		k->posts = (uint32_t)(p - k->post) + 1;
	return p;
}

int keeper_take_profile(struct keeper *k, const struct keeper_profile *plan, int *filter_fd, struct err *e)
{
	struct telling *t = &k->telling;
	struct post    *p;

	if (t->n == KEEPER_PROFILES_MAX)
		return err_set(e, ERR_PROTOCOL, "more than %d profiles", KEEPER_PROFILES_MAX);
	if (keeper_check_profile(plan, e) < 0 || check_filter(*filter_fd, e) < 0)
		return -1;
	p = find_same(k, plan, *filter_fd);
	p = p ? p : learn(k, plan, filter_fd);
	if (!p)
		return 0; /* SEAL is answered with it */
	p->is_told        = true;
	t->number[t->n++] = (uint32_t)(p - k->post);
	return 0;
}

/* --- before the first one is served --- */

/* Inside of a plain user's namespace the owners of files look the same: trees are opened before. */
static int enter(struct keeper *k, struct err *e)
{
	if (k->setup.mode == KEEPER_USER) {
		int r = privilege_show(e) < 0 ? -1 : outer_enter(&k->outer, e); /* newuidmap writes to our files in /proc */

		k->ids = k->outer.ids;
		return privilege_hide(e) < 0 ? -1 : r;
	}
	k->outer.kind = OUTER_KEPT;
	k->ids        = (struct id_range){ .base = k->setup.id_base, .count = k->setup.id_count };
	return 0;
}

/* The control groups that we make belong to group 0 of every profile. */
static int take_group(struct keeper *k, struct err *e)
{
	k->own.init_id = k->ids.base + id_range_reserve(&k->ids) * IDS_PER_CELL;
	return privilege_make_for_group(k->own.init_id) < 0 ? err_sys(e, "group of the profiles (CAP_SETGID is needed)") : 0;
}

/* A service's home has no leaves but the keeper's own; in a plain user's home, other runs of the user have some. */
static int open_home(struct keeper *k, struct err *e)
{
	bool is_service = k->outer.kind == OUTER_KEPT;

	if ((is_service ? take_group(k, e) : slot_take(k->setup.runtime, &k->ids, id_range_reserve(&k->ids), &k->own, e)) < 0)
		return -1;
	group_home_open(&k->home, k->setup.runtime);
	group_home_keep(&k->home);
	if (is_service)
		k->home_watch = group_home_watch(&k->home);
	if (is_service && group_home_lend(&k->home, k->own.init_id, e) < 0)
		return -1;
	group_home_sweep(&k->home, is_service ? NULL : &k->own);
	return 0;
}

/*
 * As many shares as there are profiles; where each has more than all runs together can use, more of them, for profiles
 * that come later. The shares of namespaces that are there cannot be made smaller.
 */
static void divide_ids(struct keeper *k)
{
	enum { ENOUGH = KEEPER_RUNS_MAX + 2 * KEEPER_READY_MAX };
	uint32_t most = id_range_reserve(&k->ids) / ENOUGH;

	k->shares = KEEPER_POSTS_MAX;
	if (k->outer.kind == OUTER_KEPT)
		k->shares = most > KEEPER_PROFILES_MAX ? KEEPER_PROFILES_MAX : most > k->telling.n ? most : k->telling.n;
	for (uint32_t i = 0; i < k->shares; i++)
		if (k->outer.kind == OUTER_KEPT)
			share_of_block(&k->share[i], &k->ids, i, k->shares, k->lock_fd);
		else
			share_of_file(&k->share[i], &k->ids, k->setup.runtime);
}

/* A rootfs that is missing is an error of each run, not of the start. */
static void open_trees(struct keeper *k)
{
	struct err ignored;

	for (uint32_t i = 0; i < k->posts; i++)
		if (k->post[i].state == POST_LEARNED)
			(void)!keeper_open_tree(k, i, &ignored);
}

static int begin(struct keeper *k, struct err *e)
{
	open_trees(k);
	if (enter(k, e) < 0 || open_home(k, e) < 0)
		return -1;
	divide_ids(k);
	signal(SIGCHLD, SIG_IGN); /* supervisors, and what they leave when they are killed; newuidmap was asked for its status */
	k->state = KEEPER_SERVES;
	return 0;
}

/* --- all of them --- */

static bool is_in_use(const struct keeper *k, const struct share *s)
{
	for (uint32_t i = 0; i < k->posts; i++)
		if (k->post[i].realm.share == s)
			return true;
	return false;
}

/* The share of this name, even while it is in use; else one that is not in use. */
static struct share *find_share(struct keeper *k, const char *name)
{
	struct share *unused = NULL;

	for (uint32_t i = 0; i < k->shares; i++) {
		if (strcmp(k->share[i].name, name) == 0)
			return &k->share[i];
		if (!unused && !is_in_use(k, &k->share[i]))
			unused = &k->share[i];
	}
	return unused;
}

static int open_one(struct keeper *k, uint32_t number, struct err *e)
{
	struct post  *p = &k->post[number];
	struct share *s = find_share(k, p->plan.name);

	if (!s)
		return err_set(e, ERR_LIMIT, "profile %s: all %u shares of the host ids are in use; a restart divides them anew", p->plan.name, k->shares);
	memcpy(s->name, p->plan.name, sizeof s->name);
	p->realm.share = s;
	return keeper_open_realm(k, number, e);
}

static int open_learned(struct keeper *k, struct err *e)
{
	if (k->telling.refused.kind != ERR_NONE) {
		*e = k->telling.refused;
		return -1;
	}
	for (uint32_t i = 0; i < k->posts; i++)
		if (k->post[i].state == POST_LEARNED && open_one(k, i, e) < 0)
			return -1;
	return 0;
}

/* A failure at the start ends the keeper; later, the profiles that serve go on. */
int keeper_take_seal(struct keeper *k, uint64_t reading, struct err *e)
{
	bool                 is_first = k->state == KEEPER_LEARNS;
	struct keeper_answer answer;
	int                  r = (is_first && begin(k, e) < 0) || open_learned(k, e) < 0 ? -1 : 0;

	memset(&answer, 0, sizeof answer);
	answer.kind         = KEEPER_SEAL;
	answer.seal.reading = reading;
	if (r < 0)
		answer.err = *e;
	else
		memcpy(answer.seal.number, k->telling.number, sizeof answer.seal.number);
	k->telling.is_sealed = r == 0;
	if (packet_offer(k->reader, &answer, sizeof answer, NULL, 0) < 0 && is_first && r == 0)
		return err_set(e, ERR_SETUP, "the reader cannot be reached");
	return is_first ? r : 0;
}

static void end_telling(struct keeper *k)
{
	for (uint32_t i = 0; i < k->posts; i++)
		k->post[i].is_told = false;
	k->telling = (struct telling){ .n = 0 };
}

static void retire(struct keeper *k, uint32_t number)
{
	k->post[number].state = POST_RETIRED;
	keeper_drop_waiting(k, number);
}

void keeper_take_serve(struct keeper *k)
{
	for (uint32_t i = 0; i < k->posts; i++)
		if (k->post[i].state == POST_LEARNED)
			k->post[i].state = POST_SERVING;
		else if (k->post[i].state == POST_SERVING && !k->post[i].is_told)
			retire(k, i);
	end_telling(k);
}

void keeper_take_both(struct keeper *k)
{
	for (uint32_t i = 0; i < k->posts; i++)
		if (k->post[i].state == POST_LEARNED)
			k->post[i].state = POST_SERVING;
	end_telling(k);
}

/* The door may have used them by now, though it should not. */
void keeper_take_drop(struct keeper *k)
{
	for (uint32_t i = 0; i < k->posts; i++)
		if (k->post[i].state == POST_LEARNED)
			retire(k, i);
	end_telling(k);
}

bool keeper_is_served(const struct keeper *k, uint32_t number)
{
	return number < k->posts && (k->post[number].state == POST_SERVING || (k->post[number].state == POST_LEARNED && k->telling.is_sealed));
}

/* --- those of before --- */

static bool has_seats(const struct keeper *k, uint32_t number)
{
	for (size_t i = 0; i < k->top; i++)
		if (k->seat[i].state != SEAT_FREE && k->seat[i].profile == number)
			return true;
	return false;
}

void keeper_clear_posts(struct keeper *k)
{
	for (uint32_t i = 0; i < k->posts; i++) {
		struct post *p = &k->post[i];

		if (p->state != POST_RETIRED || has_seats(k, i))
			continue;
		realm_stop(&p->realm);
		store_close(&p->tree);
		fd_closep(&p->filter_fd);
		*p = POST_NONE;
	}
	while (k->posts && k->post[k->posts - 1].state == POST_FREE)
		k->posts--;
}
