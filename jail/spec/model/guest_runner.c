#include "guest_runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "a,b,c", or `otherwise` when names is NULL. On the heap; NULL when out of memory. */
static char *names_join(const json_t *names, const char *otherwise)
{
	size_t len = sizeof "*", n = json_array_size(names);
	char  *text, *at;

	for (size_t i = 0; i < n; i++)
		len += json_string_length(json_array_get(names, i)) + 1;
	text = at = malloc(len);
	if (!text)
		return NULL;
	strcpy(text, names ? "" : otherwise);
	for (size_t i = 0; i < n; i++)
		at += sprintf(at, "%s%s", i ? "," : "", json_string_value(json_array_get(names, i)));
	return text;
}

int guest_runner_args_build(struct guest_runner_args *ret, const char *mode, const struct guest_runner_lists *lists, struct err *e)
{
	const char *main = lists->main ? lists->main : "";
	char       *last = malloc(strlen(main) + sizeof "--");

	if (last)
		sprintf(last, "--%s", main);
	*ret = (struct guest_runner_args){
		.list = { names_join(lists->imports, "*"), names_join(lists->modules, "*"), names_join(lists->calls, ""), last },
	};
	snprintf(ret->fd, sizeof ret->fd, lists->tools ? "%d,%d" : "%d", GUEST_RUNNER_FD, TOOLS_FD);
	for (size_t i = 0; i < ARRAY_LEN(ret->list); i++)
		if (!ret->list[i])
			return err_set(e, ERR_LIMIT, "out of memory");
	memcpy(ret->arg,
	       (const char *[]){ "python3", "-I", "/" GUEST_RUNNER_PATH, mode, ret->fd, ret->list[0], ret->list[1], ret->list[2],
	                         ret->list[3] },
	       GUEST_RUNNER_ARGS_MAX * sizeof *ret->arg);
	return 0;
}

void guest_runner_args_done(struct guest_runner_args *w)
{
	for (size_t i = 0; i < ARRAY_LEN(w->list); i++) {
		free(w->list[i]);
		w->list[i] = NULL;
	}
}
