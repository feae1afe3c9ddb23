/*
 * openapi.h - the description of the interfaces, OpenAPI 3.1: api/openapi.json, which the program carries.
 */
#pragma once
#include "interface.h"

#include <jansson.h>

struct route;

/* With the paths of these interfaces only, by the table of routes; a new reference. NULL: memory is short. */
json_t *openapi_to_json(const struct route *table, interface_set served);
