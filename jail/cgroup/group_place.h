/*
 * group_place.h - which group of a v2 hierarchy may have cells below it
 *
 * A group with processes in it cannot hand out controllers, and we are in one.
 * Where it was delegated to us, and holds nobody but us (the launcher, its
 * brigd, and the brig that started that for itself), we step aside, into a
 * leaf of our own. Otherwise the nearest group above will do that has no
 * processes and has the controllers: its limits then bound the cells. A group
 * that was delegated is never left: what is above belongs to who delegated it.
 */
#pragma once
#include "group.h"

struct group_place {
	int      fd;       /* the group, or -1 */
	unsigned offers;   /* what it can hand out: bits of enum group_controller */
	bool     is_top;   /* of the whole hierarchy: nobody's but root's */
	char     path[2 * GROUP_PATH_MAX];
};

/*
 * `own`: our own group below the mount, "" for the mount itself. -1 when there is no place: errno is EBUSY when our
 * group was delegated but holds other processes, which are not ours to move.
 */
must_use int group_place_open(const char *mount, const char *own, struct group_place *ret);

/* Undoes the step aside when there was one: when nothing lives below the place any more. */
void group_place_leave(int place);
/* Removes `base`, the group that we made in a place, and leaves the place. Fails while others use it. */
void group_place_remove(int base, bool v2);

/* Hands controllers on to the groups below; those that refuse are not in the answer. */
unsigned group_switch_on(int dir, unsigned wanted);
