#include "limits.h"

#include "layer.h"

#include <string.h>

#define LIMIT(name, type, option, least, most, preset, ceiling, doc) \
	{ #name, type, offsetof(struct limits, name), least, most, preset, doc, NULL, NULL },
const struct field limits_fields[] = {
#include "limits.def"
	{ 0 },
};
#undef LIMIT

#define LIMIT(name, type, option, least, most, preset, ceiling, doc) \
	{ #name, type, offsetof(struct limits, name), least, most, ceiling, doc, NULL, NULL },
const struct field ceilings_fields[] = {
#include "limits.def"
	{ 0 },
};
#undef LIMIT

static const struct {
	const char *setting, *option;
} options[] = {
#define LIMIT(name, type, option, least, most, preset, ceiling, doc) { #name, option },
#include "limits.def"
#undef LIMIT
};

const char *limits_option_name(const char *setting)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (strcmp(options[i].setting, setting) == 0)
			return options[i].option;
	return NULL;
}

uint64_t limits_value(const struct limits *l, const struct field *f)
{
	return *(const uint64_t *)((const char *)l + f->offset);
}

const struct field *limits_find_above_ceiling(const struct limits *limits, const struct limits *ceilings)
{
	for (const struct field *f = limits_fields; f->name; f++)
		if (limits_value(limits, f) > limits_value(ceilings, f))
			return f;
	return NULL;
}

bool limits_layer_bits_are_valid(const struct limits *l)
{
	const uint64_t all = LAYER_BIT(MEMORY) | LAYER_BIT(CPU);

	return !((l->must | l->waived) & ~all);
}
