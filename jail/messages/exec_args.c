#define _GNU_SOURCE
#include "exec_args.h"

#include "fd.h"
#include "sealed.h"

#include <stdlib.h>
#include <string.h>

/* --- writing --- */

static void block_freep(char **block)
{
	free(*block);
}

struct packer {
	char  *text;
	size_t len;
	bool   full;
};

static uint32_t pack_strings(struct packer *p, char *const *list)
{
	uint32_t n = 0;

	for (; list[n]; n++) {
		size_t len = strlen(list[n]) + 1;

		p->full |= len > EXEC_ARGS_BYTES_MAX - p->len;
		if (p->full)
			return n;
		memcpy(p->text + p->len, list[n], len);
		p->len += len;
	}
	return n;
}

static size_t count_string_bytes(char *const *list)
{
	size_t len = 0;

	for (; *list; list++)
		len += strlen(*list) + 1;
	return len;
}

int exec_args_pack(struct exec_args *ret, char **text, const char *const *paths, const char *cwd, char *const *argv,
		   char *const *envp, struct err *e)
{
	const char *const         cwds[] = { cwd, NULL };
	size_t                    len    = count_string_bytes((char *const *)paths) + count_string_bytes((char *const *)cwds) + count_string_bytes(argv) +
					   count_string_bytes(envp) + 1; /* malloc(0) may return NULL, which here means a failure */
	scoped(block_freep) char *block  = malloc(len < EXEC_ARGS_BYTES_MAX ? len : EXEC_ARGS_BYTES_MAX);
	struct packer             p      = { .text = block };
	struct exec_args          w      = EXEC_ARGS_NONE;

	if (!block)
		return err_set(e, ERR_LIMIT, "out of memory");
	w.paths = pack_strings(&p, (char *const *)paths);
	w.cwds  = pack_strings(&p, (char *const *)cwds);
	w.argc  = pack_strings(&p, argv);
	w.envc  = pack_strings(&p, envp);
	w.len   = (uint32_t)p.len;
	if (p.full || !exec_args_are_bounded(&w))
		return err_set(e, ERR_BAD_SPEC, "arguments and environment: at most %d and %d, and %dK in all",
			       EXEC_ARGS_ARGV_MAX, EXEC_ARGS_ENV_MAX, EXEC_ARGS_BYTES_MAX / 1024);
	*ret  = w;
	*text = block;
	block = NULL;
	return 0;
}

int exec_args_seal(struct exec_args *w, const char *text, struct err *e)
{
	w->fd = sealed_create("words", text, w->len, e);
	return w->fd < 0 ? err_wrap(e, "set-up step pack-words") : 0;
}

void exec_args_close(struct exec_args *w)
{
	fd_closep(&w->fd);
}

bool exec_args_are_bounded(const struct exec_args *w)
{
	return w->paths >= 1 && w->paths <= EXEC_ARGS_PATHS_MAX && w->cwds <= 1 && w->argc >= 1 &&
	       w->argc <= EXEC_ARGS_ARGV_MAX && w->envc <= EXEC_ARGS_ENV_MAX &&
	       w->len >= w->paths + w->cwds + w->argc + w->envc && w->len <= EXEC_ARGS_BYTES_MAX;
}

/* --- reading: inside the cell --- */

struct splitter {
	char *at, *end;
};

static bool split_strings(struct splitter *s, uint32_t n, char **list)
{
	for (uint32_t i = 0; i < n; i++) {
		list[i] = s->at;
		while (s->at < s->end && *s->at)
			s->at++;
		if (s->at == s->end)
			return false;
		s->at++;
	}
	list[n] = NULL;
	return true;
}

bool exec_args_split(const struct exec_args *w, char *text, struct exec_lists *ret)
{
	struct splitter s = { text, text + w->len };

	return exec_args_are_bounded(w) && split_strings(&s, w->paths, (char **)ret->path) && split_strings(&s, w->cwds, (char **)ret->cwd) &&
	       split_strings(&s, w->argc, ret->argv) && split_strings(&s, w->envc, ret->envp) && s.at == s.end;
}
