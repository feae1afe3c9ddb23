/* server_private.h - starts a private brigd */
#pragma once
#include "server.h"

/* Starts the program, and returns without waiting for it. server_close() ends it. */
must_use int server_start(struct server *ret, const char *program, struct err *e);
