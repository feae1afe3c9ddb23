/*
 * profile_file.h - profiles on disk: a user's own override the administrator's, and these the shipped ones.
 *
 * NAME.json is taken from the first of places.profiles that has it, and NAME.policy from the first that has that one,
 * which may be another. What a profile extends is laid under it, key by key. profile_file_load() and
 * profile_policy_load() fail when profile_folders_check() does.
 */
#pragma once
#include "err.h"
#include "paths.h"
#include "policy_bundle.h"
#include "profile.h"

/* The error of an unknown name lists those that exist. */
must_use int profile_file_load(struct profile *ret, const struct brig_paths *places, const char *name, struct err *e);
/* DENIED when all users may write to one of the directories, or another user than root owns the user's own one. */
must_use int profile_folders_check(const struct brig_paths *places, struct err *e);
/* The index of the first of places.profiles that has it; PROFILES_PLACES: none. The caller has checked the name. */
unsigned profile_file_find(const struct brig_paths *places, const char *name);
/* Loads the profile at this path, whatever its directory; messages name the path. */
must_use int profile_file_check(struct profile *ret, const struct brig_paths *places, const char *path, struct err *e);

must_use int profile_policy_load(struct policy_bundle *ret, const struct brig_paths *places, const struct profile *p, struct err *e);

/*
 * Names of all profiles, sorted, each once; NULL-terminated; free with profile_names_free(). NULL with *e when a folder
 * exists and cannot be read: a profile that is only there is not gone.
 */
char **profile_list_names(const struct brig_paths *places, struct err *e);
void   profile_names_free(char **names);
