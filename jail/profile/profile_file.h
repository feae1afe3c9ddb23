/*
 * profile_file.h - profiles on disk: a user's own over the administrator's over the shipped ones.
 *
 * NAME.json in the first of places.profiles that has it; NAME.policy in the
 * first that has that. A world-writable directory among them is an error of
 * every function here.
 */
#pragma once
#include "err.h"
#include "place.h"
#include "policy_bundle.h"
#include "profile.h"

/* The error of an unknown name lists those that exist. */
must_use int profile_file_load(struct profile *ret, const struct places *places, const char *name, struct err *e);
must_use int profile_folders_check(const struct places *places, struct err *e);
/* Which of places.profiles has it; PROFILES_PLACES: none. */
unsigned profile_file_find(const struct places *places, const char *name);
/* A file by its path; name is what messages call it. */
must_use int profile_file_check(struct profile *ret, const char *path, struct err *e);

must_use int profile_policy_load(struct policy_bundle *ret, const struct places *places, const struct profile *p, struct err *e);

/* Sorted, each once; NULL-terminated; free with profile_names_free(). NULL when memory is short. */
char **profile_names(const struct places *places);
void   profile_names_free(char **names);
