/*
 * server_info.h - what this server reports about itself: name, capabilities, and the text that a model reads first.
 */
#pragma once
#include "mcp.h"

/* The name that clients show, and the most bytes of the instructions: they cost a model's attention. */
#define SELF_NAME        "brig"
#define INSTRUCTIONS_MAX 1800

json_t *server_info_json(enum revision revision); /* serverInfo */
json_t *server_capabilities_json(void);
/* the modern revisions; legacy ones are negotiated by initialize */
json_t *server_supported_versions_json(void);
json_t *server_instructions_json(const struct mcp *m);
