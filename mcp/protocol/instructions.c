#define _GNU_SOURCE
#include "instructions.h"

#include "choice.h"
#include "clean.h"
#include "file.h"
#include "trust.h"
#include "paths.h"
#include "store.h"
#include "text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PROFILES_SHOWN = 6, WORDS_MAX = 90, NAME_LEN_MAX = 40 };
#define FILE_MAX (64 * KIB)
static const char ending[] = ".json";

static int is_profile_file(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return n > sizeof ending - 1 && n < NAME_LEN_MAX && strcmp(entry->d_name + n + 1 - sizeof ending, ending) == 0;
}

/* NULL: it cannot be read, or is not JSON. */
static json_t *load_profile_file(const char *folder, const char *file)
{
	scoped_bytes text = { 0 };
	char         path[PATH_SIZE + NAME_LEN_MAX + 2];
	struct err   ignored;

	snprintf(path, sizeof path, "%s/%s", folder, file);
	return trust_read(path, FILE_MAX, &text, &ignored) < 0
		       ? NULL
		       : json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
}

static bool rootfs_is_built(const struct brig_paths *at, const json_t *profile)
{
	const char *const store[2] = { at->store[0], at->store[1] };
	const char       *rootfs   = json_string_value(json_object_get(profile, "rootfs"));
	struct timespec   when;

	return rootfs && store_get_name_time(store, rootfs, &when);
}

/* Most descriptions begin with what the profile has; details follow after ';' or in brackets, and are left out. */
int instructions_brief_length(const char *description)
{
	const char *bracket = strstr(description, " (");
	size_t      n       = strcspn(description, ";\n"), until = bracket ? (size_t)(bracket - description) : n;

	n = until < n ? until : n;
	return (int)clean_whole_characters(description, n < WORDS_MAX ? n : WORDS_MAX);
}

/* Text from a folder of other users must not reach the model. Runs refuse such a folder, too. */
static bool is_trusted_folder(const char *folder)
{
	struct stat st;
	struct err  why;

	return *folder && stat(folder, &st) == 0 && trust_check(&st, folder, &why) == 0;
}

json_t *instructions_load_profile(const char *name)
{
	struct brig_paths at;
	struct err        ignored;
	char              file[NAME_LEN_MAX];
	json_t           *found = NULL;

	if (brig_paths_find(&at, &ignored) < 0 || snprintf(file, sizeof file, "%s%s", name, ending) >= (int)sizeof file)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(at.profiles) && !found; i++)
		found = is_trusted_folder(at.profiles[i]) ? load_profile_file(at.profiles[i], file) : NULL;
	return found;
}

/*
 * Adds {name: text for the model} to found. A profile of an earlier folder hides those of the same name in later
 * ones.
 */
static void add_profiles_of_folder(const char *folder, const struct brig_paths *at, json_t *seen, json_t *found)
{
	struct dirent **files;
	int             n = is_trusted_folder(folder) ? scandir(folder, &files, is_profile_file, alphasort) : -1;

	for (int i = 0; i < n; i++) {
		char       *name    = files[i]->d_name;
		json_t     *profile = load_profile_file(folder, name);
		const char *text    = json_string_value(json_object_get(profile, "description"));

		name[strlen(name) + 1 - sizeof ending] = 0;
		if (!json_object_get(seen, name) && text_is_name(name) && text && text_is_plain(text) &&
		    rootfs_is_built(at, profile) && json_object_size(found) < PROFILES_SHOWN)
			json_object_set_new(found, name, json_stringn(text, (size_t)instructions_brief_length(text)));
		json_object_set_new(seen, name, json_true());
		json_decref(profile);
		free(files[i]);
	}
	if (n >= 0)
		free(files);
}

static json_t *profiles_sentence(const json_t *found)
{
	json_t     *text = json_string(""), *about;
	const char *name;

	json_object_foreach((json_t *)found, name, about) {
		const char *before = *json_string_value(text) ? ", " : "The argument profile may name ";
		json_t     *more =
			json_sprintf("%s%s%s (%s)", json_string_value(text), before, name, json_string_value(about));

		json_decref(text);
		text = more;
	}
	if (!text || !*json_string_value(text))
		return text;
	about = json_sprintf("%s. ", json_string_value(text));
	json_decref(text);
	return about;
}

json_t *instructions_profiles_sentence(const struct mcp *m)
{
	json_t           *seen = json_object(), *found = json_object(), *text = NULL;
	struct brig_paths at;
	struct err        ignored;

	json_object_set_new(seen, choice_default_profile(m->settings),
			    json_true()); /* the default profile need not be named */
	if (brig_paths_find(&at, &ignored) == 0)
		for (size_t i = 0; i < ARRAY_LEN(at.profiles); i++)
			add_profiles_of_folder(at.profiles[i], &at, seen, found);
	text = profiles_sentence(found);
	json_decref(seen);
	json_decref(found);
	return text;
}
