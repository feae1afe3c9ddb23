/*
 * terminal.h - a page that is redrawn on the terminal, which is restored afterwards
 *
 * Keys come one by one. Signals such as SIGINT end the wait. SIGTSTP restores the terminal before the process stops.
 * A process can have only one open, because it changes the process's signal mask.
 */
#pragma once
#include "err.h"

#include <stdbool.h>
#include <stddef.h>

enum terminal_event { TERMINAL_KEY, TERMINAL_TIME, TERMINAL_RESIZED, TERMINAL_END };

must_use int terminal_open(struct err *e);
void         terminal_close(void); /* only after terminal_open() succeeded */

/* Draws as many lines and columns as fit, and cuts the rest. text must have no control characters but newlines. */
void terminal_draw(const char *text, size_t len);

/* Waits for a key (*key), a change of size, a signal that ends the page, or ms. */
enum terminal_event terminal_wait(int ms, char *key);
