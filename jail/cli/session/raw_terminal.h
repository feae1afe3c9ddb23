/*
 * raw_terminal.h - the caller's terminal in raw mode, so that every key goes to the program in the jail; restored afterwards
 *
 * From raw_terminal_open() to raw_terminal_done() signals that would end brig are remembered instead, so that only SIGKILL can
 * leave the terminal raw. They are delivered while this process waits (raw_terminal_wait(), raw_terminal_write()) and at no other
 * time. There is one terminal: its state is static in raw_terminal.c.
 */
#pragma once
#include "defs.h"
#include "err.h"

#include <poll.h>
#include <sys/types.h>

/* Are both standard input and standard output a terminal? */
bool raw_terminal_is_available(void);

must_use int raw_terminal_open(struct err *e);
void         raw_terminal_close(void); /* restores the modes; signals are still remembered. May be called twice, and when it is not open */
void         raw_terminal_done(void);  /* closes it; signals have their former effect again */

/* Sets both to the terminal's size; leaves them as they are where it is unknown. */
void raw_terminal_size(uint64_t *rows, uint64_t *columns);

enum raw_terminal_event {
	RAW_TERMINAL_READY,
	RAW_TERMINAL_RESIZED, /* or brig was stopped and continued: the size may have changed */
	RAW_TERMINAL_ENDS,    /* a signal asks for the end */
};

/* poll() without a timeout. revents are valid only after RAW_TERMINAL_READY. Stops the process when SIGTSTP came. */
enum raw_terminal_event raw_terminal_wait(struct pollfd *fds, size_t n);

/* Like write() to standard output; a signal interrupts it. */
ssize_t raw_terminal_write(const char *text, size_t len);
