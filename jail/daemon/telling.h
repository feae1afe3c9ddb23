/*
 * telling.h - the keeper is told the rules, by the reader and nobody else
 *
 * As keeper_protocol.h says it: all profiles, the seal, and then that they serve, or that they are dropped.
 */
#pragma once
#include "rules.h"

struct telling_setup {
	const struct places *places;
	enum keeper_mode     mode;
};

/*
 * setup: NULL: the keeper has heard it. reading: a number of its own: answers to others are passed over. numbers: one
 * for each profile. On failure nothing has changed for runs.
 */
must_use int telling_offer(int keeper, const struct telling_setup *setup, uint64_t reading, const struct rules *r, uint32_t numbers[KEEPER_PROFILES_MAX],
			   struct err *e);
/* The door goes by them now, or never will. A keeper that is gone is the door's to notice. */
void telling_serve(int keeper);
void telling_drop(int keeper);
