/*
 * confine.h - brig-proxy gives up what it does not need, before it reads what a stranger sent
 *
 * No capability, none to come (no_new_privs), no new process, no core file and no debugger; of the file system it can read what
 * names and certificates need (Landlock); of system calls those of a program with sockets (seccomp).
 */
#pragma once
#include "err.h"

/* What is open stays open. 0 or -1: *e says which step failed, and nothing is to be served then. */
must_use int confine(struct err *e);
