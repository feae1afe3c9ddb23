/*
 * mad_door.h - what programs need that talk to a real keeper as a door that has gone mad: its start, its set-up and descriptors
 *
 * Whatever goes wrong in here ends the program with EXIT_FAILURE and a line on standard error: it is no lie that was told.
 */
#pragma once
#include "keeper_protocol.h"

#include <sys/types.h>

_Noreturn void give_up(const char *what); /* with errno's text */
int            must(int r, const char *what); /* r, where it is not negative */

/* A memory file with these bytes; seals: F_SEAL_..., or 0. The caller closes it. */
int memory(const void *bytes, size_t len, int seals);

struct keeper_setup setup_of(const char *store, const char *runtime);

/* A keeper, and the door's and the reader's ends of its sockets; all are the caller's. */
pid_t start_keeper(const char *program, int *sock, int *rules);
