/*
 * mad_server.h - what programs need that talk to a real monitor as a server that has gone mad: its start, its set-up and descriptors
 *
 * Whatever goes wrong in here ends the program with EXIT_FAILURE and a line on standard error: it is no lie that was told.
 */
#pragma once
#include "monitor_protocol.h"

#include <sys/types.h>

_Noreturn void give_up(const char *what); /* with errno's text */
int            must(int r, const char *what); /* r, where it is not negative */

/* A memory file with these bytes; seals: F_SEAL_..., or 0. The caller closes it. */
int memory(const void *bytes, size_t len, int seals);

struct monitor_setup setup_of(const char *store, const char *runtime);

/* A monitor, and the server's and the reader's ends of its sockets; all are the caller's. */
pid_t start_monitor(const char *program, int *sock, int *rules);
