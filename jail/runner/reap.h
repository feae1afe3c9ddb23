/* reap.h - children that have ended */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

/* Reaps unknown children, up to the first known one: its cell reaps that, and a later call those behind it. */
void reap_unknown_children(bool (*is_known)(const void *, pid_t), const void *arg);
/* Waits for all children, and reaps them. */
void reap_all_children(void);
