/*
 * rules_offer.h - the reader sends the rules to the monitor; no other process does
 *
 * By the protocol of monitor_protocol.h: all profiles, the seal, and then SERVE or DROP.
 */
#pragma once
#include "rules.h"

/*
 * mode: for SETUP, which is sent first; NULL: the monitor has it already. reading: a unique number; answers to other
 * readings are ignored. numbers: one for each profile. On failure nothing has changed for runs.
 */
must_use int rules_offer_to_monitor(int monitor, const struct brig_paths *places, const enum monitor_mode *mode,
				    uint64_t reading, const struct rules *r,
				    uint32_t numbers[MONITOR_PROFILES_MAX], struct err *e);
/* Whether the server uses them from now on, or never. No error when the monitor is gone: the server notices that. */
void rules_send_decision(int monitor, bool is_served);
