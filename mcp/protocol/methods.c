/* methods.c - the methods of this server; programs of the tests have a table of their own in the place of this file */
#include "method.h"

/* clang-format off */
const struct method methods[] = {
	{ "initialize",      ERA_LEGACY, method_initialize },
	{ "ping",            ERA_LEGACY, method_ping },
	{ "server/discover", ERA_MODERN, method_discover },
	{ "tools/list",      ERA_BOTH,   method_tools_list },
	{ "tools/call",      ERA_BOTH,   method_tools_call },
	{ NULL,              ERA_BOTH,   NULL },
};
/* clang-format on */
