/*
 * check.h - brig-mcp --check: what a client would see, in words for people.
 *
 * A server is asked through the same dispatcher as those of clients: who it is,
 * what it can do, and twice to run one program, in a real jail.
 */
#pragma once
#include "settings.h"

/* Prints while it goes. -1: something is missing or wrong; *e says what, and what to type. */
must_use int check_run(const struct settings *s, FILE *out, struct err *e);
