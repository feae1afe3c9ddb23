/* tools.c - the tools of this server; programs of the tests have a table of their own in the place of this file */
#include "tool.h"

#define TOOL(name) extern const struct tool tool_##name;
#include "tools.def"

const struct tool *const tools[] = {
#define TOOL(name) &tool_##name,
#include "tools.def"
	NULL,
};
