/* reap.h - children that have ended */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

/* Reaps children that are not known, up to the first known one: its cell reaps that one, and a later call the children behind it. */
void reap_unknown(bool (*is_known)(const void *, pid_t), const void *arg);
/* Waits for all children, and reaps them. */
void reap_all(void);
