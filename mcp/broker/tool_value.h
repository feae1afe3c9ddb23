/*
 * tool_value.h - what a server has answered to tools/call, as a program gets it. Pure.
 *
 * structuredContent if there is some; else the text, if there is nothing but
 * text. Else a list of the blocks in their order: a text as text, an image, a
 * sound or a file as a bundle of MIME types, {"image/png": "<base64>"}, with
 * "uri" and "name" where it has them.
 */
#pragma once
#include "defs.h"

#include <jansson.h>

enum { TOOL_ERROR_MAX = 8 * 1024 };

/* A new reference; NULL: the tool has failed, *error is its text, clean, bounded and malloc'ed. */
json_t *tool_value_of(const json_t *result, char **error);
