/* reap.h - children that have ended */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

/* Reaps those that are not known, up to the first that is: it is left to its cell, and others behind it are seen the next time. */
void reap_unknown(bool (*is_known)(const void *, pid_t), const void *arg);
/* Each child, until there is none. */
void reap_all(void);
