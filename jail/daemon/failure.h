/*
 * failure.h - why a service of systemd's did not start, for its clients: those that wait get an answer, those that come later
 * read a file (server.h). A service that starts empties it.
 */
#pragma once
#include "listener.h"
#include "place.h"

/* A descriptor, or -1 where there is no such file to be written. To be called with the rights that brigd was started with. */
int  failure_open(const struct places *p, bool is_host);
/* *e: without paths that only brigd sees. l: NULL when waiting clients are not to be told. */
void failure_tell(int file, const struct listener *l, const struct err *e);
