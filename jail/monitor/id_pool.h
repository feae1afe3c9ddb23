/*
 * id_pool.h - the host ids of one profile's cells, two for each
 *
 * A service has a block of ids that is locked as a whole and that no other
 * process uses: the pool records which slots are taken, and every cell holds a
 * copy of the lock. Slots are used in turn: one that was given back rests before
 * another cell gets it. A plain user's monitor shares its ids with other runs of
 * that user, and locks each slot by itself.
 */
#pragma once
#include "slot.h"

enum { ID_POOL_SLOTS_MAX = 4096 };

struct id_pool {
	const char     *runtime; /* directory in which each slot is locked; NULL: the pool is part of a block */
	struct id_range range;
	int             lock_fd; /* holds the lock of the block; borrowed */
	uint32_t        first;   /* number of the first slot, among those of all pools of the block */
	uint32_t        slots, next;
	uint64_t        used[ID_POOL_SLOTS_MAX / 64];
};

void id_pool_init_in_memory(struct id_pool *ret, const struct id_range *slice, uint32_t first, int lock_fd);
void id_pool_init_with_lock_files(struct id_pool *ret, const struct id_range *range, const char *runtime);

/* ERR_LIMIT when all are taken. ret->fd belongs to the pool. */
must_use int id_pool_take_slot(struct id_pool *p, struct slot *ret, struct err *e);
void         id_pool_return_slot(struct id_pool *p, struct slot *s);
