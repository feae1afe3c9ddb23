/*
 * server_info.h - what this server reports about itself: name, capabilities, and the text that a model reads first.
 */
#pragma once
#include "mcp.h"

/* The name that clients show, and the most bytes of the instructions: they cost a model's attention. */
#define SELF_NAME        "brig"
#define INSTRUCTIONS_MAX 1800

json_t *self_info(enum revision revision); /* serverInfo */
json_t *self_capabilities(void);
/* the modern revisions; legacy ones are negotiated by initialize */
json_t *self_supported_versions(void);
json_t *self_instructions(const struct mcp *m);
