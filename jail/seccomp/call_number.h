/*
 * call_number.h - system calls by name, on the machine we were built for.
 *
 * libseccomp's table, and a short one of our own for what it does not know yet.
 */
#pragma once
#include "policy.h"

/* A number, POLICY_CALL_UNKNOWN or POLICY_CALL_NOWHERE: a policy_number_fn. */
int call_number(const char *name);
/* The name of a call; without one, its number in decimal, which a policy accepts, too. Returns buf. */
char *call_name(int number, char *buf, size_t len);
