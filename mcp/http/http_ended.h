/*
 * http_ended.h - MCP sessions that their clients have ended: later requests in them are refused. Pure.
 */
#pragma once
#include "call.h"

enum { ENDED_MAX = 256 }; /* of more the oldest are forgotten */

struct ended {
	char   owner[ENDED_MAX][sizeof ((struct channel *)NULL)->owner];
	size_t n; /* of all that were added */
};

void ended_sessions_add(struct ended *all, const char *owner);
bool ended_sessions_have(const struct ended *all, const char *owner); /* "" has not */
