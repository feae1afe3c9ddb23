#define _GNU_SOURCE
#include "profile_file.h"

#include "file.h"
#include "trust.h"
#include "policy_file.h"
#include "text.h"

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

static bool is_known(char **names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* "basic.json" -> "basic" in buf; false for any other file. */
static bool name_of(const char *file, char *buf, size_t len)
{
	size_t n = strlen(file);

	if (n < 6 || n - 5 >= len || strcmp(file + n - 5, ".json") != 0)
		return false;
	memcpy(buf, file, n - 5);
	buf[n - 5] = 0;
	return text_is_name(buf);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

enum { NAMES_MAX = 255 };

/* A folder that does not exist is an empty one. 0 or -1 with errno. */
static int add_names(const char *folder, char **names, size_t *n)
{
	DIR           *dir = opendir(folder);
	struct dirent *entry;
	char           name[64];

	if (!dir)
		return errno == ENOENT ? 0 : -1;
	while (*n < NAMES_MAX && (errno = 0, entry = readdir(dir)))
		if (name_of(entry->d_name, name, sizeof name) && !is_known(names, *n, name) && (names[*n] = strdup(name)))
			++*n;
	closedir(dir); /* of a folder that was only read: errno stays */
	return *n < NAMES_MAX && errno ? -1 : 0;
}

char **profile_names(const struct places *places, struct err *e)
{
	char **names = calloc(NAMES_MAX + 1, sizeof *names);
	size_t n     = 0;

	if (!names) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_LEN(places->profiles); i++)
		if (places->profiles[i][0] && add_names(places->profiles[i], names, &n) < 0) {
			err_sys(e, "%s", places->profiles[i]);
			profile_names_free(names);
			return NULL;
		}
	qsort(names, n, sizeof *names, by_name);
	return names;
}

static int err_unknown(const struct places *places, const char *name, struct err *e)
{
	char   list[200] = "none", where[280] = "";
	char **names     = profile_names(places, e);
	size_t n         = 0;

	if (!names)
		return -1;
	for (size_t i = 0; names[i] && n < sizeof list; i++)
		n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", names[i]);
	profile_names_free(names);
	if (strchr(name, '/') || strstr(name, ".json"))
		return err_set(e, ERR_BAD_SPEC, "\"%.63s\" is no name of a profile; name one: %s; BRIG_PROFILES=DIRECTORY is for those of your own", name, list);
	n = 0;
	for (size_t i = 0; i < PROFILES_PLACES && n < sizeof where; i++)
		if (places->profiles[i][0])
			n += (size_t)snprintf(where + n, sizeof where - n, "%s%.80s", n ? " or " : "", places->profiles[i]);
	return err_set(e, ERR_BAD_SPEC, "profile \"%.63s\" does not exist in %s; there are: %s", name, where, list);
}

/* --- folders --- */

/* A user who may write to such a folder could put a profile or a policy of any name there. */
static int check_folder(const char *path, unsigned place, struct err *e)
{
	struct stat st;

	if (!*path || (stat(path, &st) < 0 && place != PROFILES_NAMED))
		return 0;
	if (stat(path, &st) < 0)
		return err_sys(e, "BRIG_PROFILES: %s", path);
	return trust_check(&st, path, e);
}

int profile_folders_check(const struct places *places, struct err *e)
{
	for (unsigned i = 0; i < PROFILES_PLACES; i++)
		if (check_folder(places->profiles[i], i, e) < 0)
			return -1;
	return 0;
}

unsigned profile_file_find(const struct places *places, const char *name)
{
	char path[PLACE_MAX + 80];

	for (unsigned i = 0; i < PROFILES_PLACES; i++)
		if (places->profiles[i][0] && snprintf(path, sizeof path, "%s/%s.json", places->profiles[i], name) && access(path, F_OK) == 0)
			return i;
	return PROFILES_PLACES;
}

/* --- files --- */

static int parse(struct profile *ret, const char *name, const struct bytes *text, const char *path, struct err *e)
{
	return profile_parse(ret, name, text->data, text->len, e) < 0 ? err_wrap(e, "%s", path) : 0;
}

int profile_file_check(struct profile *ret, const char *path, struct err *e)
{
	scoped_bytes text = { 0 };

	if (trust_read(path, PROFILE_MAX, &text, e) < 0)
		return -1;
	return parse(ret, path, &text, path, e);
}

int profile_file_load(struct profile *ret, const struct places *places, const char *name, struct err *e)
{
	if (profile_folders_check(places, e) < 0)
		return -1;
	if (!text_is_name(name))
		return err_unknown(places, name, e);
	for (size_t i = 0; i < ARRAY_LEN(places->profiles); i++) {
		scoped_bytes text = { 0 };
		char         path[PLACE_MAX + 80];

		if (!places->profiles[i][0])
			continue;
		snprintf(path, sizeof path, "%s/%s.json", places->profiles[i], name);
		if (trust_read(path, PROFILE_MAX, &text, e) == 0)
			return parse(ret, name, &text, path, e);
		if (e->errnum != ENOENT)
			return -1;
	}
	return err_unknown(places, name, e);
}

int profile_policy_load(struct policy_bundle *ret, const struct places *places, const struct profile *p, struct err *e)
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
