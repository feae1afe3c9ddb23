/*
 * slot.h - two host ids that nobody else has while the slot is held.
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
 * The first free one from `first` on. Creates runtime_dir (0700) when it is missing. LIMIT when every slot is taken.
 * A range of one id is everybody's: slots are then numbers, and no more.
 */
must_use int slot_take(const char *runtime_dir, const struct id_range *range, uint32_t first, struct slot *ret, struct err *e);
/* That very number, within 2 s and without ids: for whoever cleans up after a launcher that died. */
must_use int slot_take_number(const char *runtime_dir, uint32_t number, struct slot *ret, struct err *e);

/*
 * A block of many, from the end of the range and never from its first half, under one lock: for a service, which keeps
 * its own books about it. *ret: its ids. The descriptor that holds the lock, or -1.
 */
must_use int slot_block_take(const char *runtime_dir, const struct id_range *range, struct id_range *ret, struct err *e);

/* A second one beside our own, if nobody holds it, and never our own. */
bool slot_borrow(const struct slot *s, uint32_t number);
void slot_give_back(const struct slot *s, uint32_t number);

void         slot_done(struct slot *s);
