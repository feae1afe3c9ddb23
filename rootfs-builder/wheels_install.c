/* wheels_install.c - installs wheels in the tree, with the suite's pip and the tree's Python */
#define _GNU_SOURCE
#include "build_log.h"
#include "chroot.h"
#include "compile.h"
#include "fd.h"
#include "file.h"
#include "text.h"
#include "tree.h"
#include "wheels.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACE     "/.brig-wheels" /* removed before the tree is compiled, linted and hashed */
#define NAME      (&PLACE[1])
#define PIP       "/usr/share/python-wheels"
#define LIBRARIES "/usr/local/lib"
#define PIP_PATH                                                                                                       \
	300 /* "/usr/share/python-wheels/pip-25.1.1-py3-none-any.whl/pip", which Python can execute without installing \
	       it */
#define LENT_MAX  (8 * MIB)

/* --- the place --- */

static int create_text_file(int place, const char *name, const char *text, struct err *e)
{
	scoped_fd fd = openat(place, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	return fd < 0 || file_write_all(fd, text, strlen(text)) < 0 ? err_sys(e, "%s", name) : 0;
}

static int find_pip_wheel(void *path, int dir, const char *name, struct err *e)
{
	(void)dir, (void)e;
	if (!begins_with(name, "pip-") || !text_ends_in(name, ".whl") || !text_is_plain(name))
		return 0;
	snprintf(path, PIP_PATH, PIP "/%.200s/pip", name);
	return 1;
}

#define PIP_MOST 40

/*
 * The options: no setup.py, no versions but those of the file, no files with other hashes, no settings of the user or
 * machine. -S: so that pip does not find packages that Debian has installed.
 */
static void build_pip_command(const char *argv[PIP_MOST], const char *pip, const char *const *own)
{
	static const char *const common[] = {
		"--isolated", "--no-input", "--no-cache-dir", "--disable-pip-version-check", "--progress-bar=off",
		"--require-hashes", "--only-binary=:all:", "--no-deps",
	};
	static const char *const python[] = { "/usr/bin/python3", "-I", "-S", "-B" };
	size_t                   n        = 0;

	for (size_t i = 0; i < ARRAY_LEN(python); i++)
		argv[n++] = python[i];
	argv[n++] = pip;
	argv[n++] = *own++;
	for (size_t i = 0; i < ARRAY_LEN(common); i++)
		argv[n++] = common[i];
	while (*own)
		argv[n++] = *own++;
	argv[n] = NULL;
}

/* If nothing matches by pip's log, which takes it many lines, the error names the requirement. Other errors are
 * in the log. */
static int err_pip(const struct wheels *w, int log, const char *doing, struct err *e)
{
	scoped_bytes output = { 0 };
	char         line[1200];

	if (e->errnum || !build_log_read(log, &output))
		return err_wrap(e, "pip, %s", doing);
	for (size_t i = 0; i < w->asked.n; i++) {
		const struct requirement *r = &w->asked.row[i];

		snprintf(line, sizeof line, "ERROR: No matching distribution found for %.500s==%.500s\n", r->name,
			 r->version);
		if (strstr(output.data, line))
			return err_set(e, ERR_MISSING,
				       "%s: line %zu: no wheel of %.60s==%.60s fits the tree's Python and machine",
				       w->recipe->requirements, r->line, r->name, r->version);
	}
	return err_wrap(e, "pip, %s", doing);
}

/* --- files of this machine, lent to the tree --- */

/* A file of this machine that replaces the tree's own until pip has ended. */
struct lent {
	const char  *path;
	/* length of the first part of path that was missing, to be removed again. 0: the tree's own file is put back */
	size_t       made;
	struct bytes own;
};

#define LENT                                                              \
	{                                                                 \
		{ .path = "/etc/resolv.conf" }, { .path = "/etc/hosts" }, \
		{                                                         \
			.path = "/etc/ssl/certs/ca-certificates.crt"      \
		}                                                         \
	}
#define LENT_N 3

static void lent_files_free(struct lent (*lent)[LENT_N])
{
	for (size_t i = 0; i < LENT_N; i++)
		bytes_done(&(*lent)[i].own);
}

/* The length of the first part of the path that is missing; 0 when nothing is. */
static size_t first_missing_part(int root, const char *path)
{
	char part[100];

	for (size_t n = 1 + strcspn(path + 1, "/");; n += 1 + strcspn(path + n + 1, "/")) {
		snprintf(part, sizeof part, "%.*s", (int)n, path);
		scoped_fd is = tree_open(root, part, O_PATH);

		if (is < 0)
			return n;
		if (!path[n])
			return 0;
	}
}

static int replace_with_host_file(int root, struct lent *l, struct err *e)
{
	scoped_bytes ours = { 0 };
	struct err   none;
	char         folder[100];

	if (file_read(AT_FDCWD, l->path, LENT_MAX, &ours, &none) < 0) {
		l->path = NULL; /* this machine has none */
		return 0;
	}
	l->made = first_missing_part(root, l->path);
	if (!l->made) {
		scoped_fd own = tree_open(root, l->path, O_RDONLY | O_NONBLOCK);

		if (own < 0)
			return err_sys(e, "%s", l->path);
		if (file_read_fd(own, l->path, LENT_MAX, &l->own, e) < 0)
			return -1;
	}
	snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(l->path, '/') - l->path), l->path);
	return tree_make_dir(root, folder, e) < 0 ? -1 : tree_write(root, l->path, ours.data, ours.len, e);
}

static int restore_tree_file(int root, const struct lent *l, struct err *e)
{
	char part[100];

	if (!l->path)
		return 0;
	if (!l->made)
		return tree_write(root, l->path, l->own.data, l->own.len, e);
	snprintf(part, sizeof part, "%.*s", (int)l->made, l->path);
	return tree_remove_path(root, part, e);
}

/* --- from an index --- */

static int download_wheels(const struct wheels *w, int root, int place, const char *pip, int log, int stop,
			   struct err *e)
{
	const char *argv[PIP_MOST];
	char       *index = NULL;
	int         bad;

	/* In a file, because other users can read command lines, and an address may have a password. */
	if (asprintf(&index, "--index-url %s\n-r " PLACE "/requirements.txt\n", w->recipe->index) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	bad = create_text_file(place, "index.txt", index, e);
	free(index);
	if (bad)
		return -1;
	build_pip_command(argv, pip,
			  (const char *const[]){ "download", "--dest=" PLACE, "--requirement=" PLACE "/index.txt",
				  NULL });
	return chroot_run(root, argv, true, log, stop, e) < 0 ? err_pip(w, log, "fetching from the index", e) : 0;
}

/* --- what pip has installed --- */

/* Removes pip itself, unless the recipe names its package. */
static int remove_pip(const struct wheels *w, int root, const char *pip, json_t *packages, struct err *e)
{
	char        wheel[PIP_PATH];
	const char *name;

	if (tree_remove(root, NAME, e) < 0)
		return -1;
	if (recipe_has_package(w->recipe, RECIPE_PIP))
		return 0;
	for (size_t i = 0; i < json_array_size(packages); i++)
		if (strcmp(json_string_value(json_object_get(json_array_get(packages, i), "name")), RECIPE_PIP) == 0)
			json_array_remove(packages, i);
	snprintf(wheel, sizeof wheel, "%.*s", (int)(strrchr(pip, '/') - pip), pip);
	if (tree_remove_path(root, wheel, e) < 0)
		return -1;
	scoped_fd above = tree_open_parent(root, PIP, &name);

	return above >= 0 && unlinkat(above, name, AT_REMOVEDIR) < 0 && errno != ENOTEMPTY ? err_sys(e, "remove " PIP)
											   : 0;
}

int wheels_add_installed_package(const struct tree_entry *entry, const char *below, json_t *packages, struct err *e)
{
	const char *last = strrchr(entry->path, '/') + 1, *dash = strchr(last, '-');
	size_t      tail = strlen(".dist-info");

	if (entry->type != TREE_DIR || !begins_with(entry->path, below) ||
	    !text_ends_in(last, ".dist-info") || !dash || !text_is_plain(last))
		return 0;
	if (json_array_append_new(packages, json_pack("{s:s%, s:s%}", "name", last, (size_t)(dash - last), "version",
						      dash + 1, strlen(dash + 1) - tail)) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	return 0;
}

/* --- the whole --- */

static int gather_wheels(const struct wheels *w, int root, int place, const char *pip, int log, int stop, struct err *e)
{
	if (create_text_file(place, "requirements.txt", w->asked.text, e) < 0)
		return -1;
	if (w->recipe->index)
		return download_wheels(w, root, place, pip, log, stop, e);
	for (size_t i = 0; i < w->n; i++) { /* pip checks the hash again, in case the file has changed */
		const char *name = strrchr(w->file[i], '/') + 1;
		scoped_fd   from = open(w->file[i], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		scoped_fd   to   = -1;

		if (from >= 0)
			to = openat(place, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
		if (to < 0 || tree_copy_bytes(from, to, UINT64_MAX) < 0)
			return err_sys(e, "copy %s", w->file[i]);
	}
	return 0;
}

static int install_wheels(const struct wheels *w, int root, const char *pip, int log, int stop, struct err *e)
{
	const char *argv[PIP_MOST];

	build_pip_command(argv, pip,
			  (const char *const[]){ "install", "--no-index", "--find-links=" PLACE, "--no-compile",
					   "--root-user-action=ignore", "--break-system-packages",
					   "--no-warn-script-location", "--requirement=" PLACE "/requirements.txt",
					   NULL });
	return chroot_run(root, argv, false, log, stop, e) < 0 ? err_pip(w, log, "installing what is required", e) : 0;
}

static int gather_and_install(const struct wheels *w, int root, const char *pip, int log, int stop, struct err *e)
{
	scoped(lent_files_free) struct lent lent[LENT_N] = LENT;
	scoped_fd                     place        = -1;

	if (tree_remove(root, NAME, e) < 0) /* what an archive may have put there */
		return -1;
	place = mkdirat(root, NAME, 0700) < 0 ? -1
					      : openat(root, NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (place < 0)
		return err_sys(e, "make " PLACE);
	for (size_t i = 0; i < LENT_N; i++)
		if (replace_with_host_file(root, &lent[i], e) < 0)
			return -1;
	if (gather_wheels(w, root, place, pip, log, stop, e) < 0 || install_wheels(w, root, pip, log, stop, e) < 0)
		return -1; /* the whole tree is discarded, with the lent files */
	for (size_t i = LENT_N; i-- > 0;)
		if (restore_tree_file(root, &lent[i], e) < 0)
			return -1;
	return 0;
}

int wheels_apply(const struct wheels *w, int root, json_t *packages, int log, int stop, struct err *e)
{
	scoped_tree t = { 0 };
	scoped_fd python = w->asked.n ? tree_open(root, "/usr/bin/python3", O_PATH) : -1;
	char      pip[PIP_PATH];

	if (!w->asked.n)
		return 0;
	if (python < 0)
		return err_set(e, ERR_BAD_SPEC,
			       "requirements: the tree has no /usr/bin/python3; the package \"python3\" brings it");
	if (tree_each_in_dir(tree_open(root, PIP, O_RDONLY | O_DIRECTORY), PIP, find_pip_wheel, pip, e) != 1)
		return err_set(e, ERR_BROKEN, "the package " RECIPE_PIP " brought no pip into " PIP);
	if (gather_and_install(w, root, pip, log, stop, e) < 0 || remove_pip(w, root, pip, packages, e) < 0 ||
	    tree_scan(root, &t, e) < 0)
		return -1;
	for (size_t i = 0; i < t.n; i++)
		if (wheels_add_installed_package(&t.entry[i], LIBRARIES "/", packages, e) < 0)
			return -1;
	return compile_wheels(root, LIBRARIES, log, stop, e);
}
