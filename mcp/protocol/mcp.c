#include "mcp.h"

#include "artifacts.h"
#include "elicitation.h"
#include "broker.h"
#include "call.h"
#include "execution.h"
#include "brigd_link.h"
#include "named_session.h"
#include "roots.h"
#include "tool.h"

#include <sys/resource.h>

static int open_broker(struct mcp *m, struct err *e)
{
	static const enum tool_other others[] = { [SETTING_TOOLS_HINTS] = TOOL_OTHER_HINTS,
						  [SETTING_TOOLS_ALLOW] = TOOL_OTHER_ALLOW,
						  [SETTING_TOOLS_ASK]   = TOOL_OTHER_ASK,
						  [SETTING_TOOLS_DENY]  = TOOL_OTHER_DENY };
	const struct settings       *s   = m->settings;
	const struct broker_settings own      = {
		     .file            = s->servers,
		     .audit           = s->tool_audit,
		     .audit_arguments = s->audit_arguments,
		     .call_ms         = s->tool_timeout_ms,
		     .ask_ms          = s->ask_timeout_ms,
		     .calls_max       = s->tool_calls,
		     .calls_rate      = s->tool_rate,
		     .policy          = { .deny  = s->deny_tools,
					  .ask   = s->ask_tools,
					  .allow = s->allow_tools,
					  .other = others[s->other_tools] },
	};

	if (!*s->servers)
		return 0;
	m->broker = broker_create(&m->loop, &own, e);
	return m->broker ? 0 : -1;
}

int mcp_open(struct mcp *ret, const struct settings *settings, struct err *e)
{
	struct rlimit files;

	*ret = (struct mcp){ .settings = settings };
	TAILQ_INIT(&ret->calls);
	TAILQ_INIT(&ret->client_requests);
	/*
	 * A running run has five descriptors, a POST one. A shortage of them could break the connection to brigd, and
	 * end all runs.
	 */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	if (loop_open(&ret->loop, e) < 0)
		return -1;
	ret->brigd_link = brigd_link_create(&ret->loop, (enum brigd_want)settings->server);
	ret->executions = executions_create(ret);
	ret->sessions   = named_sessions_create(ret);
	ret->roots      = settings->roots ? roots_create(ret) : NULL;
	if (!ret->brigd_link || !ret->executions || !ret->sessions || (settings->roots && !ret->roots))
		(void)err_set(e, ERR_LIMIT, "out of memory");
	else if (ro_folders_open(&ret->shown, settings->ro, e) == 0) {
		if (*settings->artifacts)
			ret->artifacts = artifacts_create(settings->artifacts, e);
		if ((!*settings->artifacts || ret->artifacts) && open_broker(ret, e) == 0)
			return 0;
	}
	mcp_close(ret);
	return -1;
}

void mcp_close(struct mcp *m)
{
	executions_destroy(m->executions);
	named_sessions_destroy(m->sessions);
	artifacts_destroy(m->artifacts);
	brigd_link_destroy(m->brigd_link);
	roots_destroy(m->roots);
	json_decref(m->hosts);
	ro_folders_close(&m->shown);
	broker_destroy(m->broker); /* after the runs, which have bridges to it */
	tools_done(m);
	loop_close(&m->loop);
}
