#include "mcp.h"

#include "call.h"
#include "tool.h"

int mcp_open(struct mcp *ret, const struct settings *settings, const struct extras *extras, struct err *e)
{
	*ret = (struct mcp){ .settings = settings, .extras = extras };
	TAILQ_INIT(&ret->calls);
	TAILQ_INIT(&ret->asks);
	return loop_open(&ret->loop, e);
}

void mcp_close(struct mcp *m)
{
	tools_done(m);
	loop_close(&m->loop);
}
