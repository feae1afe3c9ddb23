#include "launch_args.h"

#include <string.h>

void launch_args_to_run_spec(struct run_spec *ret, const struct launch_args *o, double asked)
{
	memset(ret, 0, sizeof *ret); /* padding too */
	ret->limits      = *o->limits;
	ret->head.exec_args    = *o->exec_args;
	ret->head.exec_args.fd = -1;
	ret->head.code_len     = o->code_fd < 0 ? 0 : o->code_len;
	ret->head.stdin_pipe   = o->stdin_pipe;
	ret->head.result_pipe  = o->result_pipe;
	ret->head.tools        = o->tools_fd >= 0;
	ret->head.executes     = o->code_fd < 0 || o->cold || o->profile->warm == WARM_NEVER;
	ret->asked             = asked;
}

size_t launch_args_collect_fds(int fds[RUN_ORDER_FDS], const struct launch_args *o, int client)
{
	size_t n = 0;

	fds[n++] = client;
	fds[n++] = o->exec_args->fd;
	if (o->code_fd >= 0 && o->code_len)
		fds[n++] = o->code_fd;
	if (o->tools_fd >= 0)
		fds[n++] = o->tools_fd;
	return n;
}
