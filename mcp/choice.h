/*
 * choice.h - which profile a call gets, and which modules it may import.
 *
 * Both are choices among what brigd allows anyway; brigd decides again.
 */
#pragma once
#include "settings.h"

/* The profile of calls that name none. */
const char *choice_profile(const struct settings *s);

/*
 * What a run may import: a new list, or NULL for anything. The list of the server (--allowed-imports, else with
 * --imports=enforce the profile's) is narrowed by that of the call; an empty list of the call counts as none.
 */
json_t *choice_imports(const struct settings *s, const json_t *profile_modules, const json_t *asked);
