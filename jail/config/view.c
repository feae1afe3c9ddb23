#define _GNU_SOURCE
#include "view.h"

#include "fd.h"
#include "file.h"
#include "trust.h"
#include "mount_plan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 64 * 1024, FILES_MAX = 512 };

/* Creates the folders above a path in the view; with `whole`, the path itself too. */
static int make_view_folders(char *path, bool whole, struct err *e)
{
	for (char *slash = strchr(path + sizeof PLACE_VIEW, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return err_sys(e, "view: %s", path);
		*slash = '/';
	}
	return whole && mkdir(path, 0755) < 0 && errno != EEXIST ? err_sys(e, "view: %s", path) : 0;
}

/* PLACE_VIEW "/store-0", then the real path outside of the view: brig_paths_unmap_view() finds it there for messages. */
static int print_path_in_view(const char *name, const char *place, char path[PATH_SIZE], struct err *e)
{
	char known[PATH_MAX];

	if (!realpath(place, known))
		known[0] = 0;
	if (snprintf(path, PATH_SIZE, PLACE_VIEW "/%s%s", name, known) >= PATH_SIZE)
		return err_set(e, ERR_BAD_SPEC, "%.60s...: path too long", place);
	return 0;
}

/* --- files: copied --- */

static int write_file_copy(const char *path, const struct bytes *text, struct err *e)
{
	scoped_fd fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	return fd < 0 || file_write_all(fd, text->data, text->len) < 0 ? err_sys(e, "view: %s", path) : 0;
}

static bool is_rule_file_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && (strcmp(dot, ".json") == 0 || strcmp(dot, ".policy") == 0);
}

/*
 * Stands for a file that is not read: the process that parses the copies refuses it as it would the file, in the same
 * words. Without it that process would take the profile of this name from a later folder, which may allow more.
 */
static int write_stand_in(const char *path, const struct stat *of, struct err *e)
{
	bool is_file = S_ISREG(of->st_mode);

	if (mknod(path, is_file ? S_IFREG | 0644 : S_IFIFO | 0644, 0) < 0 || (is_file && truncate(path, of->st_size) < 0))
		return err_sys(e, "view: %s", path);
	return 0;
}

/*
 * A file that others may write to becomes an empty copy of that mode; one that is no file, or too large, becomes
 * another such one. One of another user becomes one that is no file: only CAP_CHOWN could make it that user's.
 */
static int copy_rule_file(const char *path, int file, struct err *e)
{
	scoped_bytes text = { 0 };
	char         from[32];
	struct stat  st;

	snprintf(from, sizeof from, "/proc/self/fd/%d", file); /* this very file, even if another one has its name by now */
	if (trust_read(from, FILE_BYTES_MAX, &text, e) == 0)
		return write_file_copy(path, &text, e);
	if (fstat(file, &st) == 0 && e->kind == ERR_DENIED && st.st_uid == 0)
		return write_file_copy(path, &text, e) < 0 || chmod(path, st.st_mode & 07777) < 0 ?
			err_sys(e, "view: %s", path) : 0;
	if (fstat(file, &st) == 0 && e->kind == ERR_DENIED)
		return write_stand_in(path, &(struct stat){ .st_mode = S_IFIFO }, e);
	if (e->kind == ERR_BAD_SPEC && fstat(file, &st) == 0)
		return write_stand_in(path, &st, e);
	return err_set(e, e->kind, "%s", e->errnum ? strerror(e->errnum) : "it cannot be read");
}

static int copy_rule_file_named(unsigned *files, const char *to, int folder, const char *name, struct err *e)
{
	scoped_fd file = -1;
	char      path[PATH_SIZE + 256];

	if (!is_rule_file_name(name))
		return 0;
	file = openat(folder, name, O_PATH | O_CLOEXEC);
	if (file < 0)
		return errno == ENOENT ? 0 : err_sys(e, "%s", name); /* ENOENT: a link to nothing, which is no profile anywhere */
	if (++*files > FILES_MAX)
		return err_set(e, ERR_LIMIT, "more than %d profiles and policies", FILES_MAX);
	snprintf(path, sizeof path, "%s/%s", to, name);
	return copy_rule_file(path, file, e) < 0 ? err_wrap(e, "%s", name) : 0;
}

static int copy_folder_files(unsigned *files, const char *to, const char *folder, struct err *e)
{
	DIR           *dir = opendir(folder);
	struct dirent *entry;
	int            r = 0;

	if (!dir)
		return err_sys(e, "%s", folder);
	while (r == 0 && (errno = 0, entry = readdir(dir)))
		r = copy_rule_file_named(files, to, dirfd(dir), entry->d_name, e);
	if (r == 0 && errno)
		r = err_sys(e, "not all of it could be read");
	closedir(dir);
	return r < 0 ? err_wrap(e, "%s", folder) : 0;
}

/* Removes the copies of the last reading: the folder holds nothing else. */
static void remove_old_copies(const char *path)
{
	DIR           *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (is_rule_file_name(entry->d_name))
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
}

/*
 * Copies a folder of profiles. place becomes the path of the copy. An error of the folder is reported by the process
 * that reads the copies. That process may not be able to see that there is no folder: then place becomes "", unless it
 * is_named, by BRIG_PROFILES, whose folder must exist.
 */
static int copy_profile_folder(unsigned *files, const char *name, char *place, bool is_named, struct err *e)
{
	struct stat st;
	char        path[PATH_SIZE];
	bool        is_trusted;

	if (!*place)
		return 0;
	if (stat(place, &st) < 0) {
		if (errno == ENOENT && !is_named)
			*place = 0;
		return 0;
	}
	if (print_path_in_view(name, place, path, e) < 0 || make_view_folders(path, true, e) < 0)
		return -1;
	remove_old_copies(path);
	if (copy_folder_files(files, path, place, e) < 0)
		return -1;
	is_trusted = trust_check(&st, place, e) == 0;
	if (!is_trusted && st.st_uid != 0)
		return -1; /* only CAP_CHOWN could make the copy that user's, for the process that reads the copies to refuse */
	if (chmod(path, is_trusted ? 0755 : st.st_mode & 0777) < 0)
		return err_sys(e, "view: %s", path);
	strcpy(place, path);
	return 0;
}

static int copy_config_file(char *config, struct err *e)
{
	scoped_bytes text = { 0 };
	char         path[PATH_SIZE];

	if (!*config)
		return 0;
	if (trust_read(config, FILE_BYTES_MAX, &text, e) < 0)
		return e->errnum == ENOENT ? 0 : -1; /* config_load() reports a missing file */
	if (print_path_in_view("config", config, path, e) < 0 || make_view_folders(path, false, e) < 0)
		return -1;
	unlink(path); /* the copy of the last reading */
	if (write_file_copy(path, &text, e) < 0)
		return -1;
	strcpy(config, path);
	return 0;
}

/* --- stores: bound --- */

static int bind_store_into_view(const char *name, char *place, struct err *e)
{
	char path[PATH_SIZE];

	if (!*place || access(place, F_OK) < 0)
		return 0;
	if (print_path_in_view(name, place, path, e) < 0 || make_view_folders(path, true, e) < 0)
		return -1;
	if (mount(place, path, NULL, MS_BIND | MS_REC, NULL) < 0)
		return err_sys(e, "view: %s", place);
	strcpy(place, path);
	return 0;
}

/* --- devices: our own --- */

/*
 * A lock on /dev/null is a lock on its inode: with the host's node, programs of the host and of jails would see each
 * other's locks. Where no node can be made, as in a container, the host's nodes stay.
 */
static int mount_own_devices(struct err *e)
{
	static const char folder[] = PLACE_VIEW "/dev";
	struct mount_plan plan;
	char              own[PATH_SIZE], host[PATH_SIZE];

	if (mount_plan_build(&plan, &(struct mount_options){ 0 }, e) < 0)
		return -1;
	if (mkdir(folder, 0755) < 0 || mount("brig-dev", folder, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64k") < 0)
		return err_sys(e, "%s", folder);
	for (size_t i = 0; i < plan.n; i++) {
		const struct mount_step *device = &plan.step[i];

		snprintf(own, sizeof own, PLACE_VIEW "/%s", device->to);
		snprintf(host, sizeof host, "/%s", device->to);
		if (device->kind != MOUNT_DEVICE || mknod(own, S_IFCHR | 0666, makedev(device->major, device->minor)) < 0 ||
		    chmod(own, 0666) < 0)
			continue; /* as without CAP_MKNOD */
		if (mount(own, host, NULL, MS_BIND, NULL) < 0)
			return err_sys(e, "%s over %s", own, host);
	}
	return 0;
}

/* --- all of it --- */

static int enter_view_namespace(struct err *e)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return err_sys(e, "a mount namespace for the service");
	if (mkdir(PLACE_VIEW, 0755) < 0 && errno != EEXIST)
		return err_sys(e, PLACE_VIEW);
	if (mount("brig-view", PLACE_VIEW, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755,size=40m") < 0)
		return err_sys(e, PLACE_VIEW ": tmpfs");
	return 0;
}

int view_enter(struct brig_paths *places, struct err *e)
{
	mode_t before = umask(022);
	bool   done   = enter_view_namespace(e) == 0 && bind_store_into_view("store-0", places->store[0], e) == 0 &&
		      bind_store_into_view("store-1", places->store[1], e) == 0 && mount_own_devices(e) == 0;

	umask(before);
	return done ? 0 : -1;
}

int view_copy_files(struct brig_paths *places, char *config, struct err *e)
{
	mode_t   before = umask(022);
	unsigned files  = 0;
	int      r      = 0;
	char     name[32];

	for (unsigned i = 0; r == 0 && i < PROFILES_PLACES; i++) {
		snprintf(name, sizeof name, "profiles-%u", i);
		r = copy_profile_folder(&files, name, places->profiles[i], i == PROFILES_NAMED, e);
	}
	if (r == 0)
		r = copy_config_file(config, e);
	umask(before);
	return r;
}
