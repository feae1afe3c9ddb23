/*
 * mirror.h - headers that repeat arguments of a call, for servers of 2026-07-28 that ask for them (x-mcp-header). Pure.
 */
#pragma once
#include "defs.h"

#include <jansson.h>

struct curl_slist;

/* Adds {tool: {argument: header}} to known, from the result of tools/list. */
void mirror_learn_tools(json_t *known, const json_t *result);
/* Appends the headers of a call. NULL: memory is short, and the list was not freed. */
struct curl_slist *mirror_append_headers(struct curl_slist *headers, const json_t *known, const json_t *params);

/* "=?base64?...?=" where it is not plain ASCII; malloc'ed. */
char *mirror_encode_value(const char *text);
