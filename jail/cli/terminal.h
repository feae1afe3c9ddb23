/*
 * terminal.h - a page that is drawn again and again, and leaves the terminal as it was
 *
 * Keys come one by one, Ctrl-C and its like are flags that end the wait, Ctrl-Z stops with the terminal given back.
 * One at a time: its signals are the process's.
 */
#pragma once
#include "err.h"

#include <stdbool.h>
#include <stddef.h>

enum terminal_event { TERMINAL_KEY, TERMINAL_TIME, TERMINAL_RESIZED, TERMINAL_END };

must_use int terminal_open(struct err *e);
void         terminal_close(void); /* of one that was opened */

/* As many lines and columns as there are; longer lines are cut, and no byte of text is a control character. */
void terminal_draw(const char *text, size_t len);

/* Until a key (*key), a change of size, a signal that ends, or ms. */
enum terminal_event terminal_wait(int ms, char *key);
