/*
 * field_json.h - rows of field.h and JSON: read it, check it, describe it.
 *
 * A refusal begins with the names of the rows that lead to the value, each
 * with a colon: "limits: pids: 0 is outside 1..32768".
 */
#pragma once
#include "field.h"

#include <jansson.h>

/* Strict: what no row has is refused. Strings and lists are borrowed from the JSON value. */
must_use int fields_decode(const struct field *table, const json_t *from, void *into, struct err *e);
/* One value, which goes nowhere; offset does not matter. */
must_use int field_check(const struct field *f, const json_t *value, struct err *e);

/* New references. A number as fields_decode() takes it. */
json_t *field_json(const struct field *f, uint64_t value);
json_t *field_schema(const struct field *f);
json_t *fields_schema(const struct field *table);
