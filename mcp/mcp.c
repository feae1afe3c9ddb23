#include "mcp.h"

#include "call.h"
#include "executions.h"
#include "launcher.h"
#include "tool.h"

#include <sys/resource.h>

/* A run has five descriptors for as long as it is started, a POST one; what does not fit is lost with all that runs. */
static void raise_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

int mcp_open(struct mcp *ret, const struct settings *settings, struct err *e)
{
	*ret = (struct mcp){ .settings = settings };
	TAILQ_INIT(&ret->calls);
	raise_files();
	if (loop_open(&ret->loop, e) < 0)
		return -1;
	ret->launcher   = launcher_create(ret);
	ret->executions = executions_create(ret);
	if (ret->launcher && ret->executions)
		return 0;
	mcp_close(ret);
	return err_set(e, ERR_LIMIT, "out of memory");
}

void mcp_close(struct mcp *m)
{
	executions_destroy(m->executions);
	launcher_destroy(m->launcher);
	tools_done(m);
	loop_close(&m->loop);
}
