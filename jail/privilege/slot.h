/*
 * slot.h - two host ids that no other cell has while the slot is held.
 *
 * A slot is one byte of a lock file in the runtime directory, taken with an
 * open-file-description lock: it is free again when the last copy of the
 * descriptor is closed, however its holder died. PID 1 of the cell keeps a
 * copy, so the ids stay taken until the cell is gone.
 */
#pragma once
#include "err.h"
#include "id_range.h"

struct slot {
	int      fd; /* holds the lock; -1 when closed */
	uint32_t number;
	uint32_t init_id, program_id; /* uid and gid alike */
};

/*
 * Takes the first free slot from `first` on. Creates runtime_dir (0700) when it is missing. LIMIT when every slot is
 * taken. With a range of one id all slots have this id, and only their numbers differ.
 */
must_use int slot_take_free(const char *runtime_dir, const struct id_range *range, uint32_t first, struct slot *ret, struct err *e);
/* Takes this slot, without ids; tries for 2 s. For the client, which cleans up after a launcher that died. */
must_use int slot_wait_for_number(const char *runtime_dir, uint32_t number, struct slot *ret, struct err *e);

/*
 * Takes a block of many slots under one lock, for a service, which gives them out itself. Blocks come from the end of
 * the range and never from its first half. *ret: the ids of the block. Returns the descriptor that holds the lock, or
 * -1.
 */
must_use int slot_take_block(const char *runtime_dir, const struct id_range *range, struct id_range *ret, struct err *e);

/*
 * Locks a second slot through the descriptor of s; false when it is taken. Never pass s->number: that lock would
 * succeed, and slot_unlock_other() would release it.
 */
bool slot_try_lock_other(const struct slot *s, uint32_t number);
void slot_unlock_other(const struct slot *s, uint32_t number);

void         slot_release(struct slot *s);
