/* keeper_begin.c - what the door tells before it serves anybody */
#include "keeper_check.h"
#include "keeper_parts.h"

#include "fd.h"
#include "group_sweep.h"
#include "packet.h"
#include "privilege.h"
#include "sealed.h"

#include <linux/filter.h>
#include <signal.h>
#include <string.h>

int keeper_take_setup(struct keeper *k, const struct keeper_setup *setup, struct err *e)
{
	if (keeper_check_setup(setup, e) < 0)
		return -1;
	k->setup = *setup;
	k->state = KEEPER_LEARNS;
	return 0;
}

static int check_filter(int fd, struct err *e)
{
	size_t len;

	if (sealed_check(fd, KEEPER_FILTER_MAX * sizeof(struct sock_filter), &len, e) < 0)
		return err_wrap(e, "filter");
	return len && len % sizeof(struct sock_filter) == 0 ? 0 : err_set(e, ERR_PROTOCOL, "filter: %zu bytes are no program", len);
}

int keeper_take_profile(struct keeper *k, const struct keeper_profile *plan, int *filter_fd, struct err *e)
{
	if (k->posts == KEEPER_PROFILES_MAX)
		return err_set(e, ERR_PROTOCOL, "more than %d profiles", KEEPER_PROFILES_MAX);
	if (keeper_check_profile(plan, e) < 0 || check_filter(*filter_fd, e) < 0)
		return -1;
	k->post[k->posts++] = (struct post){ .plan = *plan, .filter_fd = fd_take(filter_fd), .realm = REALM_NONE, .tree = STORE_TREE_NONE };
	return 0;
}

/* In a plain user's namespace, once he has entered it, owners of files cannot be told from one another. */
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

/* Nobody else has leaves in a service's home; in a user's his other runs do. */
static int open_home(struct keeper *k, struct err *e)
{
	bool is_service = k->outer.kind == OUTER_KEPT;

	if ((is_service ? take_group(k, e) : slot_take(k->setup.runtime, &k->ids, id_range_reserve(&k->ids), &k->own, e)) < 0)
		return -1;
	group_home_open(&k->home, k->setup.runtime);
	group_home_keep(&k->home);
	if (is_service && group_home_lend(&k->home, k->own.init_id, e) < 0)
		return -1;
	group_home_sweep(&k->home, is_service ? NULL : &k->own);
	return 0;
}

/* One that is missing is missed by its runs. */
static void open_trees(struct keeper *k)
{
	struct err ignored;

	for (uint32_t i = 0; i < k->posts; i++)
		(void)!keeper_open_tree(k, i, &ignored);
}

static int begin(struct keeper *k, struct err *e)
{
	open_trees(k);
	if (enter(k, e) < 0 || open_home(k, e) < 0)
		return -1;
	signal(SIGCHLD, SIG_IGN); /* spawners, and what they leave when they are killed; newuidmap was asked for its status */
	for (uint32_t i = 0; i < k->posts; i++)
		if (keeper_open_realm(k, i, e) < 0)
			return -1;
	k->state = KEEPER_SERVES;
	return 0;
}

int keeper_take_seal(struct keeper *k, struct err *e)
{
	struct keeper_answer answer;
	int                  r = begin(k, e);

	memset(&answer, 0, sizeof answer);
	answer.kind = KEEPER_SEAL;
	if (r < 0)
		answer.err = *e;
	return packet_send(k->door, &answer, sizeof answer, NULL, 0) < 0 && r == 0 ? err_set(e, ERR_SETUP, "the door cannot be told") : r;
}
