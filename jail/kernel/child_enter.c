/* child_enter.c - the steps that lead a fork of a zygote into its cell; the program's own table follows */
#define _GNU_SOURCE
#include "child.h"

#include <errno.h>
#include <sched.h>

/* The groups count from here on; what PID 1 used before it was counted is known to who asked for this. */
static int enter_groups(struct child_ctx *c)
{
	int64_t before = c->cpu_before_ns;
	int     r      = child_join_groups(c);

	c->cpu_before_ns += before;
	return r;
}

/* Its process ids were entered before the fork. One call: the ids of the cell give the right to what it owns, those that we had to the rest. */
static int enter_namespaces(struct child_ctx *c)
{
	return child_sys(setns(c->cell_pidfd, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP));
}

/* clang-format off */
/* Read top to bottom: the order is the security argument. */
const struct child_step child_enter_steps[] = {
	{ "read-words",        child_map_words,           "while their descriptor is open" },
	{ "join-groups",       enter_groups,              "before anything is allocated, and while the group is ours to write to" },
	{ "enter-namespaces",  enter_namespaces,          "all that the cell has, at once: nothing is seen of one world with the rights of another" },
	{ "take-ids",          child_take_ids,            "as PID 1: what is allocated from here on is not counted for the zygote's id" },
	{ "new-keyring",       child_new_keyring,         "the zygote's keys stay outside" },
	{ NULL, NULL, NULL },
};
/* clang-format on */
