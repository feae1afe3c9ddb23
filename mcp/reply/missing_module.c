#define _GNU_SOURCE
#include "missing_module.h"

#include "hints.h"
#include "member.h"
#include "reply.h"
#include "sandbox_info.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_SHOWN = 60, NAMED_MAX = 12 };

struct want {
	struct outcome     outcome;
	struct answer_form answer_form;
	char               name[NAME_MAX_SHOWN + 1];
};

/* --- where it is --- */

/* Debian names a package like its module, in lower case and with '-' for '_'. */
static bool profile_has_module(const struct sandbox_info *s, const char *profile, const char *name)
{
	json_t *packages = sandbox_info_packages(s, profile);
	bool    found    = sandbox_info_list_has(sandbox_info_modules(s, profile), name);

	for (size_t i = 0; i < json_array_size(packages) && !found; i++) {
		const char *package = member_text(json_array_get(packages, i), "name");
		size_t      k       = 0;

		while (name[k] && package[k] == (name[k] == '_' ? '-' : tolower((unsigned char)name[k])))
			k++;
		found = !name[k] && !package[k];
	}
	json_decref(packages);
	return found;
}

/* --- what is there instead --- */

/* The libraries of the profile that has most, a new list, and *ret, that profile. NULL: no profile has any. */
static json_t *find_profile_with_most_libraries(const struct sandbox_info *s, const char **ret)
{
	const char *profile;
	json_t     *ignored, *best = NULL, *beyond;

	json_object_foreach(s->profiles, profile, ignored) {
		beyond = sandbox_info_modules_beyond_basic(s, profile);
		if (json_array_size(beyond) <= json_array_size(best)) {
			json_decref(beyond);
			continue;
		}
		json_decref(best);
		best = beyond;
		*ret = profile;
	}
	return best;
}

static void print_available_libraries(const struct sandbox_info *s, const char *name, FILE *out)
{
	const char *profile = NULL;
	json_t     *libraries = find_profile_with_most_libraries(s, &profile);

	fprintf(out, "%s is not installed here, and nothing can be installed from inside.", name);
	if (libraries)
		fprintf(out, " Profile %s has ", profile);
	for (size_t i = 0; i < json_array_size(libraries) && i < NAMED_MAX; i++)
		fprintf(out, "%s%s", i ? ", " : "", json_string_value(json_array_get(libraries, i)));
	if (libraries)
		putc('.', out);
	json_decref(libraries);
}

static void write_missing_module_hint(struct want *w, const struct sandbox_info *s)
{
	FILE       *out = fmemopen(w->outcome.hint, sizeof w->outcome.hint, "w");
	const char *profile;
	json_t     *ignored;

	if (!out)
		return;
	json_object_foreach(s->profiles, profile, ignored)
		if (strcmp(profile, w->outcome.profile) != 0 && profile_has_module(s, profile, w->name))
			break;
	if (profile && *w->outcome.session)
		fprintf(out, "%s is in profile %s: use another session, with profile=\"%s\".", w->name, profile,
			profile);
	else if (profile)
		fprintf(out, "%s is in profile %s: call again with profile=\"%s\".", w->name, profile, profile);
	else
		print_available_libraries(s, w->name, out);
	fclose(out);
	w->outcome.hint[sizeof w->outcome.hint - 1] = 0;
}

static void missing_module_free(void *owner)
{
	struct want *w = owner;

	outcome_done(&w->outcome);
	free(w);
}

static void missing_module_on_profiles(struct call *c, const struct sandbox_info *s, const struct err *why, void *owner)
{
	struct want *w = owner;

	(void)why; /* the reply then has the program's error without advice */
	if (s)
		write_missing_module_hint(w, s);
	reply_to_call(c, &w->outcome, &w->answer_form);
	missing_module_free(w);
}

bool missing_module_answer_later(struct call *c, struct outcome *o, const struct answer_form *answer_form)
{
	static const struct sandbox_info_reader reader = { .known = missing_module_on_profiles,
							   .gone  = missing_module_free };
	const json_t                           *error  = json_object_get(o->record, "error");
	char                                    name[NAME_MAX_SHOWN + 1];
	struct want                            *w = NULL;

	/* a module with a dot, as in numpy.linalg, has a package that is there: its name is not found here */
	if (strcmp(o->exit_reason, "exited") == 0 && !*o->hint &&
	    *advice_missing_module_name(error, name, NAME_MAX_SHOWN))
		w = malloc(sizeof *w);
	if (!w)
		return false;
	*w = (struct want){ .outcome = *o, .answer_form = *answer_form };
	memcpy(w->name, name, sizeof name);
	*o = (struct outcome){ 0 };
	sandbox_info_gather(c, &reader, w);
	return true;
}
