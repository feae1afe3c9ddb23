/* limits.h - how much of the machine one run may use */
#pragma once
#include "field_json.h"

struct limits {
#define LIMIT(name, type, option, least, most, preset, ceiling, doc) uint64_t name;
#include "limits.def"
#undef LIMIT
	/* Of those that only a control group can hold, "memory" and "cpus", LAYER_BITs: without must nothing runs; waived are not missed. */
	uint64_t must, waived;
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
json_t             *limits_json(const struct limits *l); /* as a profile writes them; new reference */

/* What was asked for by name must be held. asked: keys of limits_fields. */
uint64_t     limits_asked(const json_t *asked);
/* Names of options, as "memory". */
must_use int limits_waived(const json_t *names, uint64_t *ret, struct err *e);
/* No other bits. */
bool         limits_must_is_sane(const struct limits *l);
