#include "id_pool.h"

void id_pool_init_in_memory(struct id_pool *ret, const struct id_range *slice, uint32_t first, int lock_fd)
{
	uint32_t slots = id_range_slots(slice);

	*ret = (struct id_pool){ .range = *slice, .first = first, .lock_fd = lock_fd, .slots = slots < ID_POOL_SLOTS_MAX ? slots : ID_POOL_SLOTS_MAX };
}

void id_pool_init_with_lock_files(struct id_pool *ret, const struct id_range *range, const char *runtime)
{
	*ret = (struct id_pool){ .range = *range, .runtime = runtime, .lock_fd = -1 };
}

static void toggle_slot_used(struct id_pool *p, uint32_t number)
{
	p->used[number / 64] ^= 1ull << (number % 64);
}

static int take_slot_from_bitmap(struct id_pool *p, struct slot *ret, struct err *e)
{
	for (uint32_t i = 0; i < p->slots; i++) {
		uint32_t number = (p->next + i) % p->slots, id = p->range.base + number * IDS_PER_CELL;

		if (p->used[number / 64] >> (number % 64) & 1)
			continue;
		toggle_slot_used(p, number);
		p->next = number + 1;
		*ret    = (struct slot){ .fd = p->lock_fd, .number = p->first + number, .init_id = id, .program_id = id + 1 };
		return 0;
	}
	return err_set(e, ERR_LIMIT, "all %u id slots of the profile are taken", p->slots);
}

/* Searches from p->next to the end of the range, then from its beginning. */
int id_pool_take_slot(struct id_pool *p, struct slot *ret, struct err *e)
{
	if (!p->runtime)
		return take_slot_from_bitmap(p, ret, e);
	if (slot_take_free(p->runtime, &p->range, p->next, ret, e) < 0 &&
	    (e->kind != ERR_LIMIT || slot_take_free(p->runtime, &p->range, 0, ret, e) < 0))
		return -1;
	p->next = ret->number + 1;
	return 0;
}

void id_pool_return_slot(struct id_pool *p, struct slot *s)
{
	if (p->runtime)
		slot_release(s);
	else if (s->fd >= 0)
		toggle_slot_used(p, s->number - p->first);
	s->fd = -1;
}
