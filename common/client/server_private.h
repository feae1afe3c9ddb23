/* server_private.h - a brigd of our own */
#pragma once
#include "server.h"

/* Starts the program and returns at once, connected to it. */
must_use int server_start(struct server *ret, const char *program, struct err *e);
