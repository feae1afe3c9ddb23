/*
 * words.h - what a cell executes: paths, working directory, arguments, environment.
 *
 * They are hostile, and only the program's own cell reads them: a sealed memory
 * file with NUL-terminated texts, one after the other, and how many of each
 * there are. Processes that pass it on look at the numbers only.
 */
#pragma once
#include "err.h"

enum { WORDS_PATHS_MAX = 8, WORDS_ARGV_MAX = 1100, WORDS_ENV_MAX = 96, WORDS_BYTES_MAX = 256 * 1024 };

struct words {
	int      fd;
	uint32_t paths, cwds, argc, envc; /* paths: tried in turn; cwds: 1, or 0 for /workspace */
	uint32_t len;
};
#define WORDS_NONE ((struct words){ .fd = -1 })

/* Lists end with NULL; cwd may be NULL. *text: one text after the other, to be freed; fd is -1. */
must_use int words_pack(struct words *ret, char **text, const char *const *paths, const char *cwd, char *const *argv, char *const *envp, struct err *e);
/* The same text as a sealed file, to be passed on. */
must_use int words_seal(struct words *w, const char *text, struct err *e);
void         words_done(struct words *w);

/* Looks at the numbers only: at least a path and an argument, and none above its maximum. */
bool words_are_bounded(const struct words *w);

/* As execve() takes them; the texts stay where they are. */
struct word_lists {
	const char *path[WORDS_PATHS_MAX + 1], *cwd[2];
	char       *envp[WORDS_ENV_MAX + 1], *argv[WORDS_ARGV_MAX + 1];
};

/* May be called after clone(). Exactly that many texts, and not a byte more: else false. */
must_use bool words_split(const struct words *w, char *text, struct word_lists *ret);
