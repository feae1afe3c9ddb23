/*
 * run_tools.h - the tools of one run: its bridge, and what is reported to brigd about it.
 *
 * When a call is under way for longer than RUN_TOOLS_LATE_MS the program's wall clock stops: it is reported when that
 * begins and when it ends. Calls that have ended are reported to brigd for its audit, several at once
 * (brig-protocol(7), TOOLS).
 */
#pragma once
#include "mcp.h"
#include "tool_bridge.h"

enum { RUN_TOOLS_LATE_MS = 20, RUN_TOOLS_REPORT_MS = 1000 };

struct run_tools {
	struct mcp        *mcp; /* NULL: the run has no tools */
	const char        *run; /* its id */
	struct tool_bridge bridge;
	struct loop_timer  late, report_timer;
	bool               is_waiting; /* brigd has the report that a call is under way */
	json_t            *ended;      /* ended calls that were not reported yet */
	void             (*asks)(void *owner);
	void              *owner;
};

/* Takes fd over. -1: the run gets no tools, so its calls fail. t must not move. run is borrowed. */
must_use int run_tools_open(struct run_tools *t, struct mcp *m, int fd, const char *run, void (*asks)(void *owner),
			    void *owner);
/* For the end of the run: closes the bridge; its counters stay. May be called twice, and on one that is zero. */
void         run_tools_close(struct run_tools *t);
void         run_tools_done(struct run_tools *t);
