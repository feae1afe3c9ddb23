/*
 * run_tools.h - the tools of one run: its bridge, and what brigd is told of it.
 *
 * While a call is under way for longer than RUN_TOOLS_LATE_MS the wall clock of
 * the program stands still: brigd is told when that begins and when it ends.
 * Calls that have ended are told for its audit, some at once (brig-protocol(7), TOOLS).
 */
#pragma once
#include "mcp.h"
#include "tool_bridge.h"

enum { RUN_TOOLS_LATE_MS = 20, RUN_TOOLS_TELL_MS = 1000 };

struct run_tools {
	struct mcp        *mcp; /* NULL: there are none */
	const char        *run; /* its id */
	struct tool_bridge bridge;
	struct loop_timer  late, tell;
	bool               is_waiting; /* as brigd was told */
	json_t            *ended;      /* calls that brigd was not told of */
	void             (*asks)(void *owner);
	void              *owner;
};

/* Takes fd over. -1: the run has no tools, and its calls fail. t must not move. */
must_use int run_tools_open(struct run_tools *t, struct mcp *m, int fd, const char *run, void (*asks)(void *owner), void *owner);
/* The run has ended; what was counted stays. May be called twice, and on one that is zero. */
void         run_tools_close(struct run_tools *t);
void         run_tools_done(struct run_tools *t);
