/*
 * rules_offer.h - the reader sends the rules to the keeper; no other process does
 *
 * By the protocol of keeper_protocol.h: all profiles, the seal, and then SERVE or DROP.
 */
#pragma once
#include "rules.h"

/*
 * mode: for SETUP, which is sent first; NULL: the keeper has it already. reading: a unique number; answers to other readings are ignored.
 * numbers: one for each profile. On failure nothing has changed for runs.
 */
must_use int rules_offer(int keeper, const struct places *places, const enum keeper_mode *mode, uint64_t reading, const struct rules *r,
			 uint32_t numbers[KEEPER_PROFILES_MAX], struct err *e);
/* The door uses them now, or never will. No error when the keeper is gone: the door notices that. */
void rules_serve(int keeper);
void rules_drop(int keeper);
