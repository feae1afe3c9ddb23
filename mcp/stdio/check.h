/*
 * check.h - brig-mcp --check: what a client would see, in words for people.
 *
 * The requests go through the same dispatcher as those of clients: what the server is, which tools it has, and one
 * program, which is run twice in a real jail.
 */
#pragma once
#include "settings.h"

/* Prints each step when it is done. -1: something is missing or wrong; *e has what, and what to type. */
must_use int check_run(const struct settings *s, FILE *out, struct err *e);
