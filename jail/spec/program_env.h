/*
 * program_env.h - the environment that a program sees: ours, and what the caller added.
 *
 * Names that change how the interpreter or the loader start are refused: LD_*,
 * PYTHON*, PATH, GLIBC_TUNABLES. Inside the cell they could do no harm, but a
 * run must mean the same whoever starts it.
 */
#pragma once
#include "err.h"
#include "limits.h"
#include "net_policy.h"

enum { PROGRAM_ENV_MAX = 112, PROGRAM_ENV_BYTES = 64 * 1024 };

struct program_env {
	char  *entry[PROGRAM_ENV_MAX + 1]; /* "NAME=value", NULL at the end; heap */
	size_t added;                      /* bytes of the caller's */
};

/* Ours alone; then one of the caller's after the other. What fails leaves something to be freed; why does not repeat the name. */
must_use int program_env_init(struct program_env *ret, const struct limits *limits, struct err *e);
must_use int program_env_add(struct program_env *env, const char *entry, struct err *e);
/* What programs find a network by, and a placeholder for each secret; between the two. policy may be NULL; is_read: there is a file at NET_TRUST_PATH. */
must_use int program_env_add_network(struct program_env *env, const struct net_policy *policy, bool is_read, struct err *e);
/* All at once, or nothing. */
must_use int program_env_build(struct program_env *ret, const struct limits *limits, const char *const *added, size_t n,
			       struct err *e);
void         program_env_done(struct program_env *env);
