/*
 * cg_dir.h - which group of a v2 hierarchy may have cells below it
 *
 * A group with processes in it cannot hand out controllers, and the calling
 * process is in a group. If that group was delegated to us and holds only
 * processes of this brig (the caller, its brigd, what that has started, and
 * the client of a private brigd), they step aside: they move into a leaf of
 * their own, "brig-launcher". Otherwise the place is the nearest group above
 * that has no processes and has the controllers: its limits then bound the
 * cells. The search ends at a group that was delegated: groups above it belong
 * to the manager that delegated it.
 */
#pragma once
#include "cg.h"

struct cg_dir {
	int      fd;       /* the group, or -1 */
	unsigned offers;   /* what it can hand out: bits of enum cg_controller */
	bool     is_top;   /* the root of the whole hierarchy */
	char     path[2 * CG_PATH_MAX];
};

/*
 * `own`: our own group below the mount, "" for the mount itself. The caller closes ret->fd. -1 when there is no
 * place: errno is EBUSY when our group was delegated but holds other processes, which brig must not move.
 */
must_use int cg_dir_open(const char *mount, const char *own, struct cg_dir *ret);

/* Moves the processes that stepped aside back. Without effect while a group below the place uses its controllers. */
void cg_dir_step_back(int place);
/* Removes `base`, our group "brig" in a place, and leaves the place. Without effect while other processes use it. */
void cg_dir_remove_brig_group(int base, bool v2);

/* Switches controllers on ('+') or off ('-') for the groups below dir; returns those for which that was possible. */
unsigned cg_switch_controllers(int dir, char sign, unsigned which);
/* Switches those on that are off; returns those that are on. */
unsigned cg_enable_controllers(int dir, unsigned wanted);
