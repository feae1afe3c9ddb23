#include "limits.h"

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

const char *limits_option(const char *setting)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (strcmp(options[i].setting, setting) == 0)
			return options[i].option;
	return NULL;
}

int limits_check(const struct limits *limits, const struct limits *ceilings, struct err *e)
{
	for (const struct field *f = limits_fields; f->name; f++) {
		uint64_t is   = *(const uint64_t *)((const char *)limits + f->offset);
		uint64_t most = *(const uint64_t *)((const char *)ceilings + f->offset);
		char     a[32], b[32];

		if (is <= most)
			continue;
		field_print_value(f, is, a, sizeof a);
		field_print_value(f, most, b, sizeof b);
		return err_set(e, ERR_DENIED, "%s: %s is above the ceiling %s of this profile", f->name, a, b);
	}
	return 0;
}
