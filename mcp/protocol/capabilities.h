/*
 * capabilities.h - what the first generation of the published server reports about itself
 */
#pragma once
#include "sandbox_info.h"

json_t *capabilities_json(const struct mcp *m, const struct sandbox_info *s);

json_t  *capabilities_seconds_json(uint64_t ms);
