/* limits.h - how much of the machine one run may use */
#pragma once
#include "field.h"

struct limits {
#define LIMIT(name, type, option, least, most, preset, ceiling, doc) uint64_t name;
#include "limits.def"
#undef LIMIT
};

/* Row numbers of both tables. */
enum limit_id {
#define LIMIT(name, type, option, least, most, preset, ceiling, doc) LIMIT_##name,
#include "limits.def"
#undef LIMIT
	LIMIT_COUNT,
};

extern const struct field limits_fields[];   /* presets are the defaults */
extern const struct field ceilings_fields[]; /* presets are the ceilings */

/* The command-line name of a row of limits_fields: "memory_bytes" -> "memory". */
const char *limits_option(const char *setting);

/* The first row of limits_fields whose value is above its ceiling, or NULL. */
const struct field *limits_find_above(const struct limits *limits, const struct limits *ceilings);
uint64_t            limits_value(const struct limits *l, const struct field *f);
