/* brigd_private.h - starts a brigd: a private one, or one that stays */
#pragma once
#include "brigd_connection.h"

/* Starts the program, and returns without waiting for it. brigd_close() ends it. */
must_use int brigd_start(struct brigd *ret, const char *program, struct err *e);

/* Starts it as a service of the caller's own, at this socket. Returns its pid, or -1. It stays. */
must_use pid_t brigd_start_own(const char *program, const char *path, struct err *e);
