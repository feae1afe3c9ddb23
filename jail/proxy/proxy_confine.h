/*
 * proxy_confine.h - brig-proxy gives up what it does not need, before it reads bytes from programs and servers
 *
 * Afterwards it has no capability and cannot get one (no_new_privs), starts no process, writes no core file and cannot
 * be traced. It can read only the files that name resolution and certificates need (Landlock), and make only the system
 * calls of a program with sockets (seccomp).
 */
#pragma once
#include "err.h"

/* Open descriptors stay open. -1: *e names the step that failed, and the caller must not serve anything. */
must_use int proxy_confine(struct err *e);
