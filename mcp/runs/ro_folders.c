#define _GNU_SOURCE
#include "ro_folders.h"

#include "fd.h"
#include "text.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* path: absolute, judged before. */
static int ro_folders_add_fd(struct ro_folders *s, const char *text, const char *path, const char *name, struct err *e)
{
	scoped_fd fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "--ro %s", text);
	if (json_array_append_new(s->names, json_string(name)) < 0)
		return err_set(e, ERR_BAD_SPEC, "--ro %s: the name is not UTF-8", text);
	s->fd[s->n++] = fd_take(&fd);
	return 0;
}

/* text: PATH or PATH:NAME; a text that is an existing path is the path. */
static int ro_folders_add_option(struct ro_folders *s, const char *text, struct err *e)
{
	const char *colon = access(text, F_OK) == 0 ? NULL : strrchr(text, ':'), *name;
	char       *path  = colon ? strndup(text, (size_t)(colon - text)) : strdup(text),
	     *whole       = path ? realpath(path, NULL) : NULL;
	struct err  why;
	int         r = -1;

	if (!whole)
		err_sys(e, "--ro %s", text);
	free(path);
	if (!whole)
		return -1;
	name = colon && colon[1] ? colon + 1 : strrchr(whole, '/') + 1;
	if (strcmp(whole, "/") == 0)
		err_set(e, ERR_BAD_SPEC, "--ro %s: show a directory or a file, not the whole host", text);
	else if (protocol_check_ro_name(s->names, s->n, name, &why) < 0)
		err_set(e, ERR_BAD_SPEC, "--ro %.200s: %s", text, why.text);
	else
		r = ro_folders_add_fd(s, text, whole, name, e);
	free(whole);
	return r;
}

/* --- the client's --- */

static int file_uri_to_path(const char *uri, char path[SHOWN_PATH_MAX], struct err *e)
{
	static const char scheme[] = "file://";
	const char       *from     = strncmp(uri, scheme, sizeof scheme - 1) == 0 ? uri + sizeof scheme - 1 : NULL;
	size_t            n        = 0;

	if (from && begins_with(from, "localhost/"))
		from += 9;
	if (!from || *from != '/')
		return err_set(e, ERR_BAD_SPEC, "is no folder of this host, as file:///PATH");
	for (; *from && n < SHOWN_PATH_MAX - 1; from++) {
		int high = *from == '%' ? text_hex_digit(from[1]) : -1, low = high < 0 ? -1 : text_hex_digit(from[2]);

		if (*from == '%' && low < 0)
			return err_set(e, ERR_BAD_SPEC, "a %% has no two hexadecimal digits behind it");
		path[n++] = *from == '%' ? (char)(high << 4 | low) : *from;
		from += *from == '%' ? 2 : 0;
		if (!path[n - 1])
			return err_set(e, ERR_BAD_SPEC, "has a NUL");
	}
	path[n] = 0;
	return *from ? err_set(e, ERR_BAD_SPEC, "has more than %d bytes", SHOWN_PATH_MAX - 1) : 0;
}

/* Is whole the folder of, or above it? */
static bool is_same_or_above(const char *whole, const char *folder)
{
	char  *real = folder && *folder == '/' ? realpath(folder, NULL) : NULL;
	size_t n    = strlen(whole);
	bool   is   = real && strncmp(real, whole, n) == 0 && (!real[n] || real[n] == '/');

	free(real);
	return is;
}

/* Keys and tokens are in a home directory, in files whose names begin with a dot: of this user, or of any other. */
static bool is_home_folder(const char *whole, int folder)
{
	static const char *const marks[] = { ".ssh",    ".gnupg",   ".aws",          ".kube", ".netrc",
					     ".bashrc", ".profile", ".bash_history", ".zshrc" };
	const struct passwd     *user    = getpwuid(geteuid());
	struct stat              st;

	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (fstatat(folder, marks[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	return is_same_or_above(whole, "/home") || is_same_or_above(whole, getenv("HOME")) ||
	       (user && is_same_or_above(whole, user->pw_dir));
}

static int check_root(const struct ro_folders *s, const struct ro_folders *beside, const char *whole, struct err *e)
{
	const char   *name   = strrchr(whole, '/') + 1;
	scoped_fd     folder = open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	if (folder < 0)
		return err_sys(e, "cannot be read");
	if (!*name)
		return err_set(e, ERR_DENIED, "is the whole host");
	if (fstatfs(folder, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
	    fs.f_type == CGROUP_SUPER_MAGIC || fs.f_type == CGROUP2_SUPER_MAGIC || fs.f_type == DEBUGFS_MAGIC ||
	    fs.f_type == TRACEFS_MAGIC || fs.f_type == SECURITYFS_MAGIC)
		return err_set(e, ERR_DENIED, "holds what the kernel knows of the host, no files");
	if (is_home_folder(whole, folder))
		return err_set(e, ERR_DENIED,
			       "is a home directory, or above one; open a folder of a project, or name it with --ro");
	if (strlen(whole) >= SHOWN_PATH_MAX || !text_is_plain(whole))
		return err_set(e, ERR_BAD_SPEC, "has a path that cannot be shown");
	if (protocol_check_ro_name(s->names, s->n, name, e) < 0 ||
	    protocol_check_ro_name(beside->names, beside->own, name, e) < 0)
		return -1;
	if (beside->own + s->n == PROTOCOL_RO_MAX)
		return err_set(e, ERR_LIMIT, "%d folders are shown already", PROTOCOL_RO_MAX);
	return 0;
}

int ro_folders_add_root(struct ro_folders *s, const struct ro_folders *beside, const char *uri, struct err *e)
{
	char  path[SHOWN_PATH_MAX];
	char *whole;

	if (file_uri_to_path(uri, path, e) < 0)
		return -1;
	if (!s->names)
		s->names = json_array();
	whole = realpath(path, NULL);
	if (!whole)
		return err_sys(e, "cannot be read");
	if (check_root(s, beside, whole, e) == 0 &&
	    ro_folders_add_fd(s, path, whole, strrchr(whole, '/') + 1, e) == 0) {
		s->path[s->n - 1] = whole;
		return 0;
	}
	free(whole);
	return -1;
}

void ro_folders_replace_roots(struct ro_folders *s, struct ro_folders *by)
{
	while (s->n > s->own) {
		fd_closep(&s->fd[--s->n]);
		free(s->path[s->n]);
		s->path[s->n] = NULL;
		json_array_remove(s->names, s->n);
	}
	for (size_t i = 0; i < by->n; i++, s->n++) {
		s->fd[s->n]   = fd_take(&by->fd[i]);
		s->path[s->n] = by->path[i];
		by->path[i]   = NULL;
		json_array_append(s->names, json_array_get(by->names, i));
	}
	by->n = 0;
	ro_folders_close(by);
}

/* --- */

int ro_folders_open(struct ro_folders *ret, const json_t *rows, struct err *e)
{
	*ret = (struct ro_folders){ .names = json_array() };
	for (size_t i = 0; i < json_array_size(rows); i++) {
		if (ro_folders_add_option(ret, json_string_value(json_array_get(rows, i)), e) == 0)
			continue;
		ro_folders_close(ret);
		return -1;
	}
	ret->own = ret->n;
	return 0;
}

void ro_folders_close(struct ro_folders *s)
{
	for (size_t i = 0; i < s->n; i++)
		fd_closep(&s->fd[i]);
	for (size_t i = 0; i < s->n; i++)
		free(s->path[i]);
	json_decref(s->names);
	*s = (struct ro_folders){ 0 };
}

void ro_folders_put_into_request(const struct ro_folders *s, json_t *message)
{
	if (s->n)
		json_object_set(message, "ro", s->names);
}

int ro_folders_dup_fds(const struct ro_folders *s, int *fds, struct err *e)
{
	for (size_t i = 0; i < s->n; i++) {
		fds[i] = fcntl(s->fd[i], F_DUPFD_CLOEXEC, 3);
		if (fds[i] < 0)
			return err_sys(e, "dup");
	}
	return 0;
}
