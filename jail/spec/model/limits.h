/* limits.h - how much of the machine one run may use */
#pragma once
#include "field_json.h"

struct limits {
#define LIMIT(name, type, option, least, most, preset, ceiling, doc) uint64_t name;
#include "limits.def"
#undef LIMIT
	/*
	 * LAYER_BITs of the two limits that only a control group can enforce, MEMORY and CPU. must: the run is refused
	 * where they cannot be enforced. waived: they may be missing.
	 */
	uint64_t must, waived;
};

/* Row numbers of limits_fields and ceilings_fields. */
enum limit_id {
#define LIMIT(name, type, option, least, most, preset, ceiling, doc) LIMIT_##name,
#include "limits.def"
#undef LIMIT
	LIMIT_COUNT,
};

extern const struct field limits_fields[];   /* presets are the defaults */
extern const struct field ceilings_fields[]; /* presets are the ceilings */

/* The command-line name of a row of limits_fields: "memory_bytes" -> "memory". */
const char *limits_option_name(const char *setting);

/* The first row of limits_fields whose value is above its ceiling, or NULL. */
const struct field *limits_find_above_ceiling(const struct limits *limits, const struct limits *ceilings);
uint64_t            limits_value(const struct limits *l, const struct field *f);
json_t             *limits_to_json(const struct limits *l); /* as a profile writes them; new reference */

/* The LAYER_BITs for `must`: of the limits that the request names. asked: an object with keys of limits_fields. */
uint64_t     limits_asked_layers(const json_t *asked);
/* The LAYER_BITs for `waived`. names: option names, like "memory". */
must_use int limits_parse_waived(const json_t *names, uint64_t *ret, struct err *e);
/* must and waived have no bits but those of MEMORY and CPU. */
bool         limits_layer_bits_are_valid(const struct limits *l);
