/*
 * field_json.h - reads and checks JSON by the rows of field.h, and makes the schema.
 *
 * An error begins with the names of the rows that lead to the value, each
 * with a colon: "limits: pids: 0 is outside 1..32768".
 */
#pragma once
#include "field.h"

#include <jansson.h>

/* Strict: a key without a row is refused. Strings and lists are borrowed from the JSON value. */
must_use int fields_decode(const struct field *table, const json_t *from, void *into, struct err *e);
/* Checks one value without storing it. Not for FIELD_TABLE. */
must_use int field_check(const struct field *f, const json_t *value, struct err *e);

/* New references. field_number_to_json(): a number of the row, as fields_decode() reads it. */
json_t *field_number_to_json(const struct field *f, uint64_t value);
json_t *field_schema(const struct field *f);
json_t *fields_schema(const struct field *table);
