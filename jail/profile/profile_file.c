#define _GNU_SOURCE
#include "profile_file.h"

#include "file.h"
#include "trust.h"
#include "policy_file.h"
#include "text.h"
#include "wire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- names --- */

void profile_names_free(char **names)
{
	for (size_t i = 0; names && names[i]; i++)
		free(names[i]);
	free(names);
}

/* False: it is the name of no profile, or is there. */
static bool is_new_profile_name(const char *name, char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return false;
	return text_is_name(name);
}

static int compare_name_pointers(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

enum { NAMES_MAX = 255 };

/* A folder that does not exist is an empty one. 0 or -1 with errno. */
static int add_profile_names_of_folder(const char *folder, char **names, size_t *n)
{
	DIR           *dir = opendir(folder);
	struct dirent *entry;

	if (!dir)
		return errno == ENOENT ? 0 : -1;
	while (*n < NAMES_MAX && (errno = 0, entry = readdir(dir))) {
		char *dot = strrchr(entry->d_name, '.');

		if (!dot || strcmp(dot, ".json") != 0)
			continue;
		*dot = 0;
		if (is_new_profile_name(entry->d_name, names, *n) && (names[*n] = strdup(entry->d_name)))
			++*n;
	}
	closedir(dir); /* of a folder that was only read: errno stays */
	return *n < NAMES_MAX && errno ? -1 : 0;
}

char **profile_list_names(const struct brig_paths *places, struct err *e)
{
	char **names = calloc(NAMES_MAX + 1, sizeof *names);
	size_t n     = 0;

	if (!names) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_LEN(places->profiles); i++)
		if (places->profiles[i][0] && add_profile_names_of_folder(places->profiles[i], names, &n) < 0) {
			err_sys(e, "%s", places->profiles[i]);
			profile_names_free(names);
			return NULL;
		}
	qsort(names, n, sizeof *names, compare_name_pointers);
	return names;
}

static int err_unknown_profile(const struct brig_paths *places, const char *name, struct err *e)
{
	char   list[200] = "none", where[280] = "";
	char **names     = profile_list_names(places, e);
	size_t n         = 0;

	if (!names)
		return -1;
	for (size_t i = 0; names[i] && n < sizeof list; i++)
		n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", names[i]);
	profile_names_free(names);
	if (strchr(name, '/') || strstr(name, ".json"))
		return err_set(e, ERR_BAD_SPEC, "\"%.63s\" is no name of a profile; name one: %s; BRIG_PROFILES=DIRECTORY is for those of "
			       "your own", name, list);
	n = 0;
	for (size_t i = 0; i < PROFILES_PLACES && n < sizeof where; i++)
		if (places->profiles[i][0])
			n += (size_t)snprintf(where + n, sizeof where - n, "%s%.80s", n ? " or " : "", places->profiles[i]);
	return err_set(e, ERR_BAD_SPEC, "profile \"%.63s\" does not exist in %s; there are: %s", name, where, list);
}

/* --- folders --- */

/* A user who may write to such a folder could put a profile or a policy of any name there. */
int profile_folders_check(const struct brig_paths *places, struct err *e)
{
	for (unsigned i = 0; i < PROFILES_PLACES; i++) {
		const char *path = places->profiles[i];
		struct stat st;

		if (!*path)
			continue;
		if (stat(path, &st) < 0) {
			if (i == PROFILES_NAMED)
				return err_sys(e, "BRIG_PROFILES: %s", path);
		} else if (trust_check(&st, path, e) < 0) {
			return -1;
		}
	}
	return 0;
}

unsigned profile_file_find(const struct brig_paths *places, const char *name)
{
	char path[PATH_SIZE + 80];

	for (unsigned i = 0; i < PROFILES_PLACES; i++)
		if (places->profiles[i][0] && snprintf(path, sizeof path, "%s/%s.json", places->profiles[i], name) &&
		    access(path, F_OK) == 0)
			return i;
	return PROFILES_PLACES;
}

/* --- files --- */

enum { EXTENDS_MAX = 8 };

/* The profile in the first directory that has it, from the one numbered *place on; *place becomes the number of that directory. */
static int find_profile_source(const struct brig_paths *places, const char *name, unsigned *place, unsigned depth,
			       json_t **ret, struct err *e);

/* The settings of own over those of base, which becomes both. */
static int merge_settings(json_t *base, const json_t *own)
{
	static const char *const tables[] = { "limits", "ceilings", "network" };
	const char              *key;
	json_t                  *value;

	json_object_foreach((json_t *)own, key, value) {
		json_t *below    = json_object_get(base, key);
		bool    is_table = false;

		for (size_t i = 0; i < ARRAY_LEN(tables); i++)
			is_table = is_table || strcmp(key, tables[i]) == 0;
		is_table = is_table && json_is_object(below) && json_is_object(value);
		if ((is_table ? json_object_update(below, value) : json_object_set(base, key, value)) < 0)
			return -1;
	}
	return json_object_del(base, "extends");
}

/* place: of the profile that extends; one of the same name is looked for in the directories behind it. */
static int extend_profile(const struct brig_paths *places, const char *name, unsigned place, unsigned depth,
			  json_t **own, const char *path, struct err *e)
{
	const json_t *extends = json_object_get(*own, "extends");
	const char   *base    = json_string_value(extends);
	json_t       *both = NULL;
	unsigned      from;

	if (!extends)
		return 0;
	if (!base || !text_is_name(base))
		return err_set(e, ERR_BAD_SPEC, "%s: extends: name a profile, like \"basic\"", path);
	if (depth == EXTENDS_MAX)
		return err_set(e, ERR_BAD_SPEC, "%s: extends: more than %d profiles extend each other", path, EXTENDS_MAX);
	from = strcmp(base, name) == 0 ? place + 1 : 0;
	if (find_profile_source(places, base, &from, depth + 1, &both, e) < 0)
		return depth ? -1 : err_wrap(e, "%s: extends", path);
	if (merge_settings(both, *own) < 0) {
		json_decref(both);
		return err_set(e, ERR_LIMIT, "out of memory");
	}
	json_decref(*own);
	*own = both;
	return 0;
}

/* The file's object, with what it extends. ENOENT in e->errnum: there is no such file. */
static int read_profile_source(const struct brig_paths *places, const char *name, unsigned place, unsigned depth,
			       const char *path, json_t **ret, struct err *e)
{
	scoped_bytes text = { 0 };
	json_t      *own;

	if (trust_read(path, PROFILE_MAX, &text, e) < 0)
		return -1;
	own = wire_parse(text.data, text.len, PROFILE_MAX, e);
	if (!own)
		return err_wrap(e, "%s", path);
	if (extend_profile(places, name, place, depth, &own, path, e) < 0) {
		json_decref(own);
		e->errnum = 0;
		return -1;
	}
	*ret = own;
	return 0;
}

static int find_profile_source(const struct brig_paths *places, const char *name, unsigned *place, unsigned depth,
			       json_t **ret, struct err *e)
{
	unsigned first = *place;

	for (; *place < PROFILES_PLACES; ++*place) {
		char path[PATH_SIZE + 80];

		if (!places->profiles[*place][0])
			continue;
		snprintf(path, sizeof path, "%s/%s.json", places->profiles[*place], name);
		if (read_profile_source(places, name, *place, depth, path, ret, e) == 0)
			return 0;
		if (e->errnum != ENOENT)
			return -1;
	}
	return first ? err_set(e, ERR_BAD_SPEC, "there is no other profile \"%.63s\"", name) :
		err_unknown_profile(places, name, e);
}

static int parse_profile_source(struct profile *ret, const char *name, const json_t *source, const char *path,
				struct err *e)
{
	char *text = json_dumps(source, JSON_COMPACT);
	int   r    = text ? profile_parse(ret, name, text, strlen(text), e) : err_set(e, ERR_LIMIT, "out of memory");

	free(text);
	return r < 0 ? err_wrap(e, "%s", path) : 0;
}

int profile_file_check(struct profile *ret, const struct brig_paths *places, const char *path, struct err *e)
{
	scoped_json *source = NULL;

	if (read_profile_source(places, "", 0, 0, path, &source, e) < 0)
		return -1;
	return parse_profile_source(ret, path, source, path, e);
}

int profile_file_load(struct profile *ret, const struct brig_paths *places, const char *name, struct err *e)
{
	scoped_json *source = NULL;
	unsigned     place   = 0;
	char         path[PATH_SIZE + 80];

	if (profile_folders_check(places, e) < 0)
		return -1;
	if (!text_is_name(name))
		return err_unknown_profile(places, name, e);
	if (find_profile_source(places, name, &place, 0, &source, e) < 0)
		return -1;
	snprintf(path, sizeof path, "%s/%s.json", places->profiles[place], name);
	return parse_profile_source(ret, name, source, path, e);
}

int profile_policy_load(struct policy_bundle *ret, const struct brig_paths *places, const struct profile *p, struct err *e)
{
	const char *folders[PROFILES_PLACES + 1] = { NULL };

	for (unsigned i = 0; i < PROFILES_PLACES; i++)
		folders[i] = places->profiles[i];
	if (profile_folders_check(places, e) < 0)
		return -1;
	if (policy_bundle_build(ret, p->policy, p->policy_extend, policy_file_read, folders, e) < 0)
		return err_wrap(e, "profile %s", p->name);
	return 0;
}
