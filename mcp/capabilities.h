/*
 * capabilities.h - what the first generation of the published server said about itself, for get_sandbox_info and
 * list_capabilities
 */
#pragma once
#include "survey.h"

json_t *capabilities_json(const struct mcp *m, const struct survey *s);

json_t  *capabilities_seconds(uint64_t ms);
