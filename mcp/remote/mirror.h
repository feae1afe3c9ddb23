/*
 * mirror.h - arguments that a server of 2026-07-28 wants in headers as well (x-mcp-header). Pure.
 */
#pragma once
#include "defs.h"

#include <jansson.h>

struct curl_slist;

/* From the result of tools/list into {tool: {argument: header}}. */
void mirror_learn(json_t *known, const json_t *result);
/* The headers of a call, behind those that there are. NULL: memory is short, and the list is gone. */
struct curl_slist *mirror_headers(struct curl_slist *headers, const json_t *known, const json_t *params);

/* "=?base64?...?=" where it is not plain ASCII; malloc'ed. */
char *mirror_encode(const char *text);
