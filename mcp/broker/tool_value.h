/*
 * tool_value.h - the result of a tools/call, as a program gets it. Pure.
 *
 * It is structuredContent if there is any, or the text if all blocks are text, or else a list of the blocks in their order: a
 * text as text; an image, a sound or a file as a bundle of MIME types, {"image/png": "<base64>"}, with "uri" and "name" where
 * it has them.
 */
#pragma once
#include "defs.h"

#include <jansson.h>

enum { TOOL_ERROR_MAX = 8 * 1024 };

/* A new reference; NULL: the tool has failed, *error is its text, clean, bounded and malloc'ed. */
json_t *tool_result_to_value(const json_t *result, char **error);
