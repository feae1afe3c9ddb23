/*
 * policy_value.h - the names that policy files use instead of numbers.
 *
 * Flags and commands come from the kernel's own headers, one row each in
 * policy_value.def; errnos from the C library. Pure.
 */
#pragma once
#include "defs.h"

struct policy_value {
	const char *name;
	const char *call; /* a prefix of the calls that take it: "socket" is for socketpair, too */
	int         arg;
	uint32_t    value;
};

/* Calls each() for every value of the word: a name, a number, or NAME* for all names that begin so. False: none. */
bool policy_value_for_each(const char *word, void (*each)(void *context, uint32_t value), void *context);

/* The name of a value of this argument; NULL when there is none, or more than one. */
const char *policy_value_name(const char *call, unsigned arg, uint32_t value);
/* The name of a socket option of setsockopt or getsockopt, whose meaning depends on the level; or NULL. */
const char *policy_value_sockopt_name(const char *call, uint32_t level, uint32_t value);
/* Writes "CLONE_NEWNS CLONE_NEWNET", or "0x30" for bits without a name. */
void policy_value_print_bits(const char *call, unsigned arg, uint32_t bits, char *buf, size_t len);

int         policy_errno_number(const char *name); /* 0: no such errno */
const char *policy_errno_name(int number);

uint64_t policy_value_digest(uint64_t seed); /* of the values, not of the names; part of the key of the filter cache */
