/* limits_json.c - limits to and from JSON. Not in limits.c, so that the monitor links no JSON parser. */
#include "layer.h"
#include "limits.h"

#include <string.h>

static const struct {
	enum limit_id limit;
	uint64_t      layer;
} by_groups[] = {
	{ LIMIT_memory_bytes, LAYER_BIT(MEMORY) },
	{ LIMIT_cpus, LAYER_BIT(CPU) },
};

uint64_t limits_asked_layers(const json_t *asked)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < ARRAY_LEN(by_groups); i++)
		if (json_object_get(asked, limits_fields[by_groups[i].limit].name))
			bits |= by_groups[i].layer;
	return bits;
}

int limits_parse_waived(const json_t *names, uint64_t *ret, struct err *e)
{
	*ret = 0;
	for (size_t i = 0; i < json_array_size(names); i++) {
		const char *name  = json_string_value(json_array_get(names, i));
		uint64_t    layer = 0;

		for (size_t k = 0; k < ARRAY_LEN(by_groups); k++)
			if (strcmp(limits_option_name(limits_fields[by_groups[k].limit].name), name) == 0)
				layer = by_groups[k].layer;
		if (!layer)
			return err_set(e, ERR_BAD_SPEC, "\"%.60s\" is not a limit that can be missing; there are: memory, cpus", name);
		*ret |= layer;
	}
	return 0;
}

json_t *limits_to_json(const struct limits *l)
{
	json_t *j = json_object();

	for (const struct field *f = limits_fields; f->name; f++)
		json_object_set_new(j, f->name, field_number_to_json(f, limits_value(l, f)));
	return j;
}
