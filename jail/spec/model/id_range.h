/*
 * id_range.h - which host ids cells may have.
 *
 * Pure: takes the bytes of /etc/subuid and /etc/subgid. A service uses the range
 * of the account "brig" if /etc/subuid has one; /etc/subgid must then have the
 * same. Otherwise it uses a fixed high range, which is refused when it overlaps
 * any range in those files. Each cell takes two ids (a slot): one for PID 1, one
 * for the program. With one shared id the program could renice and pin its PID 1.
 *
 * A plain user has the range that both files give that user. A range that
 * overlaps one of another user is refused: two users, or root and a user, must
 * never have a host id in common.
 */
#pragma once
#include "err.h"

enum { IDS_PER_CELL = 2, ID_RANGE_PRESET_BASE = 0x70000000, ID_RANGE_PRESET_COUNT = 65536 };

/* Above systemd's container range (0x80000..0x6fffffff), below 2^31, which some programs read as negative. */
struct id_range {
	uint32_t base, count;
};

must_use int id_range_choose(const char *subuid, const char *subgid, struct id_range *ret, struct err *e);

struct id_user {
	const char *name; /* may be NULL: an id without an account */
	uint32_t    uid, gid;
};

/* As many uids as gids; the bases may differ. ERR_MISSING, with a message for the user, when no range is left. */
must_use int id_range_of_user(const char *subuid, const char *subgid, const struct id_user *user, struct id_range *uids,
			      struct id_range *gids, struct err *e);

/* 65536 ids that are in neither file, from 100000 on, where useradd begins. -1 when there are none below the preset. */
must_use int id_range_find_free(const char *subuid, const char *subgid, struct id_range *ret);

/*
 * The last slots are for brig's own processes, not for cells: the ids of brig-proxy, the group that owns the control
 * groups. No user namespace of a profile maps them.
 */
enum { ID_SLOTS_RESERVED = 64 };

static inline uint32_t id_range_slots(const struct id_range *r)
{
	return r->count / IDS_PER_CELL;
}

/* The first reserved slot. */
static inline uint32_t id_range_reserve(const struct id_range *r)
{
	return id_range_slots(r) > ID_SLOTS_RESERVED ? id_range_slots(r) - ID_SLOTS_RESERVED : 0;
}
