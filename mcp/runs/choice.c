#include "choice.h"

#include <string.h>

const struct choice_switch choice_switches[CHOICE_SWITCHES] = {
	{ SETTING_data_science, "data-science" },
	{ SETTING_network, "network" },
	{ SETTING_filesystem, "filesystem" },
};

bool choice_switch_is_on(const struct settings *s, const struct choice_switch *of)
{
	return *(const bool *)((const char *)s + setting_rows[of->id].field.offset);
}

const struct choice_switch *choice_find_switch(const struct settings *s)
{
	for (size_t i = 0; i < CHOICE_SWITCHES && s->origin[SETTING_profile] == ORIGIN_PRESET; i++)
		if (choice_switch_is_on(s, &choice_switches[i]))
			return &choice_switches[i];
	return NULL;
}

const char *choice_default_profile(const struct settings *s)
{
	const struct choice_switch *on = choice_find_switch(s);

	return on ? on->profile : s->profile;
}

/* Is name the module itself, or a package that has it? "os" has "os.path". */
static bool module_is_within(const char *module, const char *name)
{
	size_t n = strlen(module);

	return strncmp(module, name, n) == 0 && (name[n] == 0 || name[n] == '.');
}

static void list_add_once(json_t *list, const char *name)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(json_string_value(json_array_get(list, i)), name) == 0)
			return;
	json_array_append_new(list, json_string(name));
}

static json_t *modules_in_both(const json_t *a, const json_t *b)
{
	json_t *list = json_array();

	for (size_t i = 0; i < json_array_size(a); i++)
		for (size_t k = 0; k < json_array_size(b); k++) {
			const char *one   = json_string_value(json_array_get(a, i)),
				   *other = json_string_value(json_array_get(b, k));

			if (module_is_within(one, other))
				list_add_once(list, other);
			else if (module_is_within(other, one))
				list_add_once(list, one);
		}
	return list;
}

json_t *choice_allowed_imports(const struct settings *s, const json_t *profile_modules, const json_t *asked)
{
	const json_t *base = json_array_size(s->allowed_imports) ? s->allowed_imports : NULL;

	if (!base && s->imports == IMPORTS_ENFORCE && json_array_size(profile_modules))
		base = profile_modules;
	if (!json_array_size(asked))
		return base ? json_copy((json_t *)base) : NULL;
	return base ? modules_in_both(base, asked) : json_copy((json_t *)asked);
}
