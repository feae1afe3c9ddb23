/*
 * raw_terminal.h - the caller's terminal in raw mode: every key is for the program behind brig, and brig's caller gets it back as it was
 *
 * From raw_terminal_open() to raw_terminal_done() signals that would end brig are remembered instead, so that there is no way
 * out which leaves the terminal raw but SIGKILL. They can come while this process waits (raw_terminal_wait(), raw_terminal_show())
 * and at no other time. There is one terminal: its state is this file's.
 */
#pragma once
#include "defs.h"
#include "err.h"

#include <poll.h>
#include <sys/types.h>

/* Are both standard input and standard output a terminal? */
bool raw_terminal_is_there(void);

must_use int raw_terminal_open(struct err *e);
void         raw_terminal_close(void); /* may be called twice, and before it is open; signals are still remembered */
void         raw_terminal_done(void);  /* closes it; signals do again what they did before */

/* Rows and columns as the terminal says them; as they were where it does not know. */
void raw_terminal_size(uint64_t *rows, uint64_t *columns);

enum raw_terminal_event {
	RAW_TERMINAL_READY,
	RAW_TERMINAL_RESIZED, /* or it was stopped and goes on: the size may be another one */
	RAW_TERMINAL_ENDS,    /* a signal asks for the end */
};

/* poll() without a limit of time. Any event but READY: revents say nothing. Stops the process itself when SIGTSTP asks for that. */
enum raw_terminal_event raw_terminal_wait(struct pollfd *fds, size_t n);

/* As write() to standard output; a signal cuts it short. */
ssize_t raw_terminal_show(const char *text, size_t len);
