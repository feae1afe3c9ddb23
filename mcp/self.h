/*
 * self.h - what this server says about itself: name, capabilities, and the text that a model reads first.
 */
#pragma once
#include "mcp.h"

/* Names that clients show; INSTRUCTIONS_MAX characters are all that models are bothered with. */
#define SELF_NAME        "brig"
#define INSTRUCTIONS_MAX 1800

json_t *self_info(enum revision revision);                                /* serverInfo */
json_t *self_capabilities(void);
json_t *self_versions(void);                                              /* the modern ones: the others are for initialize */
json_t *self_instructions(const struct mcp *m);
