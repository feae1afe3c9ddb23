/*
 * interrupt.h - SIGINT, SIGTERM and SIGHUP end the run, and not only brig.
 *
 * The first signal makes brig ask brigd to cancel the run. SIGINT interrupts a
 * call of a session instead, so that its interpreter stays. A second signal ends
 * brig itself, and brigd then cleans up alone. A signal that brig's caller
 * ignores stays ignored (nohup).
 */
#pragma once
#include "defs.h"

/* Installs the handlers: a signal is remembered until interrupt_arm(). */
void interrupt_install_handlers(void);

/* The run's id is known: from now on a signal sends a request over sock; a signal that came before sends it at once. is_call: SIGINT interrupts. */
void interrupt_arm(int sock, const char *run, bool is_call);
void interrupt_disarm(void); /* before the socket is closed */

/* The last signal; 0: none. */
int interrupt_caught(void);

/* Restores the signal mask that early.c replaced (the kernel's 64 bits). A signal that came meanwhile is delivered now. */
void interrupt_restore_mask(uint64_t mask);
