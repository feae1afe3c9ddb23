/*
 * exec_args.h - what a cell executes: paths, working directory, arguments, environment.
 *
 * The texts are hostile, and only the program's own cell reads them. They are a
 * sealed memory file with NUL-terminated texts, one after the other, and how many
 * of each there are. Processes that pass the file on look at the numbers only.
 */
#pragma once
#include "err.h"

enum { EXEC_ARGS_PATHS_MAX = 8, EXEC_ARGS_ARGV_MAX = 1100, EXEC_ARGS_ENV_MAX = 96, EXEC_ARGS_BYTES_MAX = 256 * 1024 };

struct exec_args {
	int      fd;
	uint32_t paths, cwds, argc, envc; /* paths: tried in turn; cwds: 1, or 0 for /workspace */
	uint32_t len;
};
#define EXEC_ARGS_NONE ((struct exec_args){ .fd = -1 })

/* Lists end with NULL; cwd may be NULL. *text: one text after the other, which the caller frees. ret->fd is -1. */
must_use int exec_args_pack(struct exec_args *ret, char **text, const char *const *paths, const char *cwd,
			    char *const *argv, char *const *envp, struct err *e);
/* Opens w->fd: the same text as a sealed file, to be passed on. */
must_use int exec_args_seal(struct exec_args *w, const char *text, struct err *e);
void         exec_args_close(struct exec_args *w);

/* Looks at the numbers only. True: at least a path and an argument, and no number above its maximum. */
bool exec_args_are_bounded(const struct exec_args *w);

/* As execve() takes them; the pointers lead into the text that was split. */
struct exec_lists {
	const char *path[EXEC_ARGS_PATHS_MAX + 1], *cwd[2];
	char       *envp[EXEC_ARGS_ENV_MAX + 1], *argv[EXEC_ARGS_ARGV_MAX + 1];
};

/* May be called after clone(). False unless there are exactly so many texts, and not a byte more. */
must_use bool exec_args_split(const struct exec_args *w, char *text, struct exec_lists *ret);
