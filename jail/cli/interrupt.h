/*
 * interrupt.h - Ctrl-C and its like end the run, and not only brig.
 *
 * The first signal asks brigd to cancel, or Ctrl-C to interrupt a call of a
 * session, whose interpreter stays; a second one ends brig itself, and
 * brigd then cleans up alone. What the caller ignores stays ignored (nohup).
 */
#pragma once
#include "defs.h"

/* From now on a signal is remembered. */
void interrupt_catch(void);

/* Now the run has a name: a signal asks for its end over the socket, one that came before does so at once. is_call: Ctrl-C interrupts it. */
void interrupt_arm(int sock, const char *run, bool is_call);
void interrupt_disarm(void); /* before the socket is closed */

/* Which one came; 0: none. */
int interrupt_caught(void);

/* Of what was blocked before brig began, and no longer is: mask as the kernel has it. One that came meanwhile is caught now. */
void interrupt_let_in(uint64_t mask);
