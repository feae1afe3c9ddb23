/*
 * choice.h - which profile a call gets, and which modules it may import.
 *
 * Both are choices among what brigd allows anyway; brigd decides again.
 */
#pragma once
#include "settings.h"

/* The switches of the published server are profiles here. */
struct choice_switch {
	enum setting_id id;
	const char     *profile;
};
enum { CHOICE_SWITCHES = 3 };
extern const struct choice_switch choice_switches[CHOICE_SWITCHES];
bool choice_switch_is_on(const struct settings *s, const struct choice_switch *of);
/* The one that sets which profile calls get; NULL: none does. */
const struct choice_switch *choice_find_switch(const struct settings *s);

/* The profile of calls that name none. */
const char *choice_default_profile(const struct settings *s);

/*
 * What a run may import: a new list, or NULL for anything. The list of the server (--allowed-imports, else with
 * --imports=enforce the profile's) is narrowed by that of the call; an empty list of the call counts as none.
 */
json_t *choice_allowed_imports(const struct settings *s, const json_t *profile_modules, const json_t *asked);
