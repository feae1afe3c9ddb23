#define _GNU_SOURCE
#include "paths.h"

#include "text.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOT_INSTALLED "/nonexistent/" /* the prefix of programs of a tarball (packaging/tarball/compile), which only a tree has */

static int join_path(char *at, struct err *e, const char *dir, const char *tail)
{
	int n = snprintf(at, PATH_SIZE, "%s%s", dir, tail);

	if (n < 0 || n >= PATH_SIZE)
		return err_set(e, ERR_BAD_SPEC, "%.60s...: path too long", dir);
	return 0;
}

/* A variable that is not brig's own, like HOME. NULL when it is unset, empty or relative. */
static const char *env_absolute_path(const char *name)
{
	const char *value = secure_getenv(name);

	return value && value[0] == '/' ? value : NULL;
}

/*
 * A variable of brig's own. A relative path is an error: it would mean another
 * place after the next cd, and to ignore it would use profiles that the user did
 * not choose.
 */
static int brig_variable_path(const char *name, const char **ret, struct err *e)
{
	const char *value = secure_getenv(name);

	*ret = value && *value ? value : NULL;
	if (*ret && value[0] != '/')
		return err_set(e, ERR_BAD_SPEC, "%s: \"%.60s\" is no absolute path", name, value);
	return 0;
}

bool find_path_of_program(char path[PATH_SIZE])
{
	char    whole[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, PATH_SIZE - 1);

	if (n >= 0) {
		path[n] = 0;
		return true;
	}
	if (!realpath((const char *)getauxval(AT_EXECFN), whole) || strlen(whole) >= PATH_SIZE)
		return false;
	strcpy(path, whole);
	return true;
}

/* In the directory of this program: a user who can write there could replace this program as well. */
static int find_brigd(char *path, struct err *e)
{
	char *slash;

	if (find_path_of_program(path) && (slash = strrchr(path, '/')) && slash + sizeof "/brigd" <= path + PATH_SIZE) {
		strcpy(slash, "/brigd");
		if (access(path, X_OK) == 0)
			return 0;
	}
	return join_path(path, e, BRIG_SBINDIR, "/brigd");
}

/* The root of the tree (paths.h) from whose bin/ this program runs, else "". */
static int find_tree_root(char *root, struct err *e)
{
	char        mark[PATH_SIZE + 32];
	struct stat st;
	char       *slash;

	if (!find_path_of_program(root)) {
		root[0] = 0;
		return 0;
	}
	for (int up = 0; up < 2; up++)
		if ((slash = strrchr(root, '/')))
			*slash = 0;
	if (snprintf(mark, sizeof mark, "%s/" TREE_MARK, root) >= (int)sizeof mark)
		return err_set(e, ERR_BAD_SPEC, "%.60s...: path too long", root);
	if (stat(mark, &st) < 0)
		root[0] = 0;
	else if (!root[0])
		strcpy(root, "/.");
	return 0;
}

static bool is_own_directory(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

/* A plain user's own store, when HOME or XDG_DATA_HOME names a place for it, is searched before the shared one. */
static int set_store_paths(struct brig_paths *p, const char *shared, struct err *e)
{
	const char *home = env_absolute_path("HOME"), *data = env_absolute_path("XDG_DATA_HOME");

	if (geteuid() == 0 || (!data && !home))
		return join_path(p->store[0], e, shared, "");
	if ((data ? join_path(p->store[0], e, data, "/brig/rootfs") : join_path(p->store[0], e, home, "/.local/share/brig/rootfs")) < 0)
		return -1;
	if (access(p->store[0], X_OK) < 0 && errno == EACCES) /* runuser and sudo may leave HOME at a directory that the user cannot enter */
		return join_path(p->store[0], e, shared, "");
	return join_path(p->store[1], e, shared, "");
}

/* A plain user's own profiles, unless the user cannot enter the directory. */
static int set_user_profiles_path(struct brig_paths *p, struct err *e)
{
	const char *home = env_absolute_path("HOME"), *config = env_absolute_path("XDG_CONFIG_HOME");
	char       *own = p->profiles[PROFILES_OWN];

	if (geteuid() == 0 || (!config && !home))
		return 0;
	if ((config ? join_path(own, e, config, "/brig/profiles") : join_path(own, e, home, "/.config/brig/profiles")) < 0)
		return -1;
	if (access(own, X_OK) < 0 && errno == EACCES)
		own[0] = 0;
	return 0;
}

static int set_installed_paths(struct brig_paths *p, struct err *e)
{
	if (begins_with(BRIG_DATADIR, NOT_INSTALLED))
		return err_set(e, ERR_MISSING, "this program belongs to an unpacked tarball, and ../" TREE_MARK " is not there: put a link to it here instead of a copy (ln -s FOLDER/bin/brig), or unpack again");
	if (join_path(p->profiles[PROFILES_HOST], e, "/etc/brig/profiles", "") < 0 ||
	    join_path(p->profiles[PROFILES_PRESET], e, BRIG_DATADIR "/profiles", "") < 0 ||
	    join_path(p->recipes, e, BRIG_DATADIR "/recipes", "") < 0 ||
	    join_path(p->guest, e, BRIG_DATADIR "/guest", "") < 0)
		return -1;
	return set_store_paths(p, "/var/lib/brig/rootfs", e);
}

static int set_tree_paths(struct brig_paths *p, const char *root, struct err *e)
{
	char store[PATH_SIZE];

	if (join_path(p->profiles[PROFILES_PRESET], e, root, "/profiles") < 0 || join_path(p->recipes, e, root, "/recipes") < 0 ||
	    join_path(p->guest, e, root, "/guest") < 0)
		return -1;
	if (snprintf(store, sizeof store, "%s/store", root) >= (int)sizeof store)
		return err_set(e, ERR_BAD_SPEC, "%.60s...: path too long", root);
	return geteuid() == 0 || is_own_directory(root) ? join_path(p->store[0], e, store, "") : set_store_paths(p, store, e);
}

/* ".brig" in the home directory of /etc/passwd; accounts from elsewhere need NSS libraries, which a static brig does not have. */
static bool find_home_runtime_folder(char path[PATH_SIZE])
{
	FILE                *file = fopen("/etc/passwd", "re");
	const struct passwd *account;
	struct stat          home;
	bool                 found = false;

	if (!file)
		return false;
	while (!found && (account = fgetpwent(file)))
		found = account->pw_uid == geteuid() && snprintf(path, PATH_SIZE, "%s/.brig", account->pw_dir) < PATH_SIZE &&
			stat(account->pw_dir, &home) == 0 && S_ISDIR(home.st_mode) && home.st_uid == geteuid();
	fclose(file);
	return found;
}

/*
 * Does not read the environment: two launchers with different runtime directories
 * would use the same host ids. XDG_RUNTIME_DIR is set in a login session but not in
 * a cron job; both find /run/user/UID, which logind creates. In /tmp another user
 * may have created the directory first. ~/.brig is used then, and also later when it
 * exists: the other user may remove the directory in /tmp again.
 */
static int find_runtime_folder(struct brig_paths *p, struct err *e)
{
	char        path[64], in_home[PATH_SIZE];
	struct stat st;

	if (geteuid() == 0)
		return join_path(p->runtime, e, "/run/brig", "");
	snprintf(path, sizeof path, "/run/user/%u", geteuid());
	if (is_own_directory(path))
		return join_path(p->runtime, e, path, "/brig");
	snprintf(path, sizeof path, "/tmp/brig-%u", geteuid());
	if (!is_own_directory(path) && find_home_runtime_folder(in_home) && (lstat(path, &st) == 0 || is_own_directory(in_home)))
		return join_path(p->runtime, e, in_home, "");
	return join_path(p->runtime, e, path, "");
}

int brig_paths_find(struct brig_paths *ret, struct err *e)
{
	struct brig_paths p = { 0 };
	char              root[PATH_SIZE];
	const char       *profiles, *presets, *store;

	if (brig_variable_path("BRIG_PROFILES", &profiles, e) < 0 || brig_variable_path("BRIG_PRESETS", &presets, e) < 0 || brig_variable_path("BRIG_STORE", &store, e) < 0)
		return -1;
	if (find_tree_root(root, e) < 0 || find_runtime_folder(&p, e) < 0 || find_brigd(p.brigd, e) < 0)
		return -1;
	if ((root[0] ? set_tree_paths(&p, root, e) : set_installed_paths(&p, e)) < 0)
		return -1;
	if ((root[0] ? join_path(p.libexec, e, root, "/bin") : join_path(p.libexec, e, BRIG_LIBEXECDIR, "")) < 0)
		return -1;
	p.apart = root[0] || profiles || presets || store;
	if (set_user_profiles_path(&p, e) < 0)
		return -1;
	if (profiles && join_path(p.profiles[PROFILES_NAMED], e, profiles, "") < 0) /* before all other directories */
		return -1;
	if (presets) { /* instead of all other directories */
		p.profiles[PROFILES_OWN][0] = p.profiles[PROFILES_HOST][0] = 0;
		if (join_path(p.profiles[PROFILES_PRESET], e, presets, "") < 0)
			return -1;
	}
	if (store) {
		p.store[1][0] = 0;
		if (join_path(p.store[0], e, store, "") < 0)
			return -1;
	}
	*ret = p;
	return 0;
}

/* PLACE_VIEW "/store-0/home/alice/store" becomes "/home/alice/store". */
void brig_paths_unmap_view(char *text)
{
	static const char view[] = PLACE_VIEW "/";

	while ((text = strstr(text, view))) {
		char *name = text + sizeof view - 1, *known = name + strcspn(name, "/ :;,\"");

		if (*known == '/')
			memmove(text, known, strlen(known) + 1);
		text++;
	}
}
