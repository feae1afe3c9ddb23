/*
 * program_env.h - the environment of a program: brig's variables and the client's.
 *
 * Names that change how the interpreter or the loader starts are refused: LD_*,
 * PYTHON*, PATH, GLIBC_TUNABLES. They could do no harm inside the cell, but the
 * same program must run in the same way for every client.
 */
#pragma once
#include "err.h"
#include "limits.h"
#include "net_policy.h"

enum { PROGRAM_ENV_MAX = 112, PROGRAM_ENV_BYTES = 64 * 1024 };

struct program_env {
	char  *entry[PROGRAM_ENV_MAX + 1]; /* "NAME=value", NULL at the end; heap */
	size_t added;                      /* bytes that program_env_add() has added */
};

/*
 * program_env_init() sets brig's own variables; program_env_add() adds one of the client's, which replaces one of the
 * same name. Call program_env_done() after a failure, too. The message in e does not repeat the name.
 */
must_use int program_env_init(struct program_env *ret, const struct limits *limits, struct err *e);
must_use int program_env_add(struct program_env *env, const char *entry, struct err *e);
/*
 * The variables by which programs find the proxy, and a placeholder for each secret. Call it before program_env_add(),
 * so that the client's variables win. policy may be NULL; is_read: there is a file at NET_TRUST_PATH.
 */
must_use int program_env_add_network(struct program_env *env, const struct net_policy *policy, bool is_read, struct err *e);
/* program_env_init(), and program_env_add() for each entry of added. On failure nothing is to be freed. */
must_use int program_env_build(struct program_env *ret, const struct limits *limits, const char *const *added, size_t n,
			       struct err *e);
void         program_env_done(struct program_env *env);
