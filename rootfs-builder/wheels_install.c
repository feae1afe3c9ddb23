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
#define LENT_MAX  (8 * MIB)

static bool ends_in(const char *name, const char *tail)
{
	size_t n = strlen(name), m = strlen(tail);

	return n > m && strcmp(name + n - m, tail) == 0;
}

/* --- the place --- */

static int copy_bytes(int from, int to)
{
	char    block[64 * 1024];
	ssize_t n;

	while ((n = read(from, block, sizeof block)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || file_write_all(to, block, (size_t)n) < 0)
			return -1;
	}
	return 0;
}

/* pip checks the hash again, in case the file has changed. */
static int copy_file(int place, const char *path, const char *name, struct err *e)
{
	scoped_fd from = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	scoped_fd to   = from < 0 ? -1 : openat(place, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	return to < 0 || copy_bytes(from, to) < 0 ? err_sys(e, "copy %s", path) : 0;
}

static int put_text(int place, const char *name, const char *text, struct err *e)
{
	scoped_fd fd = openat(place, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	return fd < 0 || file_write_all(fd, text, strlen(text)) < 0 ? err_sys(e, "%s", name) : 0;
}

/* Removes first what an archive may have put there. */
static int make_place(int root, struct err *e)
{
	if (tree_remove(root, NAME, e) < 0)
		return -1;
	if (mkdirat(root, NAME, 0700) < 0)
		return err_sys(e, "make " PLACE);
	int fd = openat(root, NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_sys(e, PLACE) : fd;
}

/* Finds "/usr/share/python-wheels/pip-25.1.1-py3-none-any.whl/pip", which Python can execute without installing it. */
static int find_pip(int root, char path[300], struct err *e)
{
	scoped_fd   folder = tree_open(root, PIP, O_RDONLY | O_DIRECTORY);
	scoped_dir *d      = folder < 0 ? NULL : fdopendir(folder);

	if (d)
		fd_take(&folder);
	for (struct dirent *at; d && (at = readdir(d));)
		if (strncmp(at->d_name, "pip-", 4) == 0 && ends_in(at->d_name, ".whl") && text_is_plain(at->d_name)) {
			snprintf(path, 300, PIP "/%.200s/pip", at->d_name);
			return 0;
		}
	return err_set(e, ERR_BROKEN, "the package " RECIPE_PIP " brought no pip into " PIP);
}

#define PIP_MOST 40

/*
 * The options: no setup.py, no versions but those of the file, no files with other hashes, no settings of the user or machine.
 * -S: so that pip does not find packages that Debian has installed.
 */
static void pip_command(const char *argv[PIP_MOST], const char *pip, const char *const *own)
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

/* If pip's log says that nothing matches, which takes it many lines, the error names the requirement. Other errors are in the log. */
static int err_pip(const struct wheels *w, int log, const char *doing, struct err *e)
{
	scoped_bytes said = { 0 };
	char         line[1200];

	if (e->errnum || !build_log_read(log, &said))
		return err_wrap(e, "pip, %s", doing);
	for (size_t i = 0; i < w->asked.n; i++) {
		const struct requirement *r = &w->asked.row[i];

		snprintf(line, sizeof line, "ERROR: No matching distribution found for %.500s==%.500s\n", r->name, r->version);
		if (strstr(said.data, line))
			return err_set(e, ERR_MISSING, "%s: line %zu: no wheel of %.60s==%.60s fits the tree's Python and machine", w->recipe->requirements,
				       r->line, r->name, r->version);
	}
	return err_wrap(e, "pip, %s", doing);
}

/* --- files of this machine, lent to the tree --- */

/* A file of this machine that replaces the tree's own until pip has ended. */
struct lent {
	const char  *path;
	size_t       made; /* length of the first part of path that was missing, to be removed again. 0: the tree's own file is put back */
	struct bytes own;
};

#define LENT { { .path = "/etc/resolv.conf" }, { .path = "/etc/hosts" }, { .path = "/etc/ssl/certs/ca-certificates.crt" } }
#define LENT_N 3

static void lent_done(struct lent (*lent)[LENT_N])
{
	for (size_t i = 0; i < LENT_N; i++)
		bytes_done(&(*lent)[i].own);
}

/* The length of the first part of the path that is missing; 0 when nothing is. */
static size_t find_missing(int root, const char *path)
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

static int keep_own(int root, struct lent *l, struct err *e)
{
	scoped_fd fd = tree_open(root, l->path, O_RDONLY | O_NONBLOCK);

	return fd < 0 ? err_sys(e, "%s", l->path) : file_read_fd(fd, l->path, LENT_MAX, &l->own, e);
}

static int lend(int root, struct lent *l, struct err *e)
{
	scoped_bytes ours = { 0 };
	struct err   none;
	char         folder[100];

	if (file_read(AT_FDCWD, l->path, LENT_MAX, &ours, &none) < 0) {
		l->path = NULL; /* this machine has none */
		return 0;
	}
	l->made = find_missing(root, l->path);
	if (!l->made && keep_own(root, l, e) < 0)
		return -1;
	snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(l->path, '/') - l->path), l->path);
	return tree_make_dir(root, folder, e) < 0 ? -1 : tree_write(root, l->path, ours.data, ours.len, e);
}

static int take_back(int root, const struct lent *l, struct err *e)
{
	char        part[100];
	const char *name;

	if (!l->path)
		return 0;
	if (!l->made)
		return tree_write(root, l->path, l->own.data, l->own.len, e);
	snprintf(part, sizeof part, "%.*s", (int)l->made, l->path);
	scoped_fd parent = tree_open_parent(root, part, &name);

	return parent < 0 ? err_sys(e, "%s", part) : tree_remove(parent, name, e);
}

/* --- from an index --- */

/* In a file, because other users can read command lines, and an address may have a password. */
static int write_index(const struct wheels *w, int place, struct err *e)
{
	char *text = NULL;
	int   bad;

	if (asprintf(&text, "--index-url %s\n-r " PLACE "/requirements.txt\n", w->recipe->index) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	bad = put_text(place, "index.txt", text, e);
	free(text);
	return bad;
}

static int fetch(const struct wheels *w, int root, int place, const char *pip, int log, int stop, struct err *e)
{
	const char *argv[PIP_MOST];

	if (write_index(w, place, e) < 0)
		return -1;
	pip_command(argv, pip, (const char *const[]){ "download", "--dest=" PLACE, "--requirement=" PLACE "/index.txt", NULL });
	return chroot_run_online(root, argv, log, stop, e) < 0 ? err_pip(w, log, "fetching from the index", e) : 0;
}

/* --- what pip has installed --- */

static void forget(json_t *packages, const char *name)
{
	for (size_t i = 0; i < json_array_size(packages); i++)
		if (strcmp(json_string_value(json_object_get(json_array_get(packages, i), "name")), name) == 0)
			json_array_remove(packages, i);
}

/* Removes pip itself, unless the recipe names its package. */
static int tidy(const struct wheels *w, int root, const char *pip, json_t *packages, struct err *e)
{
	char        wheel[300];
	const char *name;

	if (tree_remove(root, NAME, e) < 0)
		return -1;
	if (recipe_has_package(w->recipe, RECIPE_PIP))
		return 0;
	forget(packages, RECIPE_PIP);
	snprintf(wheel, sizeof wheel, "%.*s", (int)(strrchr(pip, '/') - pip), pip);
	scoped_fd folder = tree_open_parent(root, wheel, &name), above = -1;

	if (folder < 0 || tree_remove(folder, name, e) < 0)
		return folder < 0 ? err_sys(e, "%s", wheel) : -1;
	above = tree_open_parent(root, PIP, &name);
	return above >= 0 && unlinkat(above, name, AT_REMOVEDIR) < 0 && errno != ENOTEMPTY ? err_sys(e, "remove " PIP) : 0;
}

/* "/usr/local/lib/python3.11/dist-packages/NAME-VERSION.dist-info" */
static int add_package(const struct tree_entry *entry, json_t *packages, struct err *e)
{
	const char *last = strrchr(entry->path, '/') + 1, *dash = strchr(last, '-');
	size_t      tail = strlen(".dist-info");

	if (entry->type != TREE_DIR || strncmp(entry->path, LIBRARIES "/", strlen(LIBRARIES "/")) != 0 || !ends_in(last, ".dist-info") || !dash || !text_is_plain(last))
		return 0;
	if (json_array_append_new(packages, json_pack("{s:s%, s:s%}", "name", last, (size_t)(dash - last), "version", dash + 1,
						      strlen(dash + 1) - tail)) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	return 0;
}

static int add_packages(int root, json_t *packages, struct err *e)
{
	scoped_tree t = { 0 };

	if (tree_scan(root, &t, e) < 0)
		return -1;
	for (size_t i = 0; i < t.n; i++)
		if (add_package(&t.entry[i], packages, e) < 0)
			return -1;
	return 0;
}

/* --- the whole --- */

static int gather(const struct wheels *w, int root, int place, const char *pip, int log, int stop, struct err *e)
{
	if (put_text(place, "requirements.txt", w->asked.text, e) < 0)
		return -1;
	if (w->recipe->index)
		return fetch(w, root, place, pip, log, stop, e);
	for (size_t i = 0; i < w->n; i++)
		if (copy_file(place, w->file[i], strrchr(w->file[i], '/') + 1, e) < 0)
			return -1;
	return 0;
}

static int install(const struct wheels *w, int root, const char *pip, int log, int stop, struct err *e)
{
	const char *argv[PIP_MOST];

	pip_command(argv, pip, (const char *const[]){ "install", "--no-index", "--find-links=" PLACE, "--no-compile", "--root-user-action=ignore",
						      "--break-system-packages", "--no-warn-script-location",
						      "--requirement=" PLACE "/requirements.txt", NULL });
	return chroot_run(root, argv, log, stop, e) < 0 ? err_pip(w, log, "installing what is required", e) : 0;
}

static int run_pip(const struct wheels *w, int root, const char *pip, int log, int stop, struct err *e)
{
	scoped(lent_done) struct lent lent[LENT_N] = LENT;
	scoped_fd                     place        = make_place(root, e);

	if (place < 0)
		return -1;
	for (size_t i = 0; i < LENT_N; i++)
		if (lend(root, &lent[i], e) < 0)
			return -1;
	if (gather(w, root, place, pip, log, stop, e) < 0 || install(w, root, pip, log, stop, e) < 0)
		return -1; /* the whole tree is discarded, with the lent files */
	for (size_t i = LENT_N; i-- > 0;)
		if (take_back(root, &lent[i], e) < 0)
			return -1;
	return 0;
}

int wheels_apply(const struct wheels *w, int root, json_t *packages, int log, int stop, struct err *e)
{
	scoped_fd python = w->asked.n ? tree_open(root, "/usr/bin/python3", O_PATH) : -1;
	char      pip[300];

	if (!w->asked.n)
		return 0;
	if (python < 0)
		return err_set(e, ERR_BAD_SPEC, "requirements: the tree has no /usr/bin/python3; the package \"python3\" brings it");
	if (find_pip(root, pip, e) < 0 || run_pip(w, root, pip, log, stop, e) < 0)
		return -1;
	if (tidy(w, root, pip, packages, e) < 0 || add_packages(root, packages, e) < 0)
		return -1;
	return compile_wheels(root, LIBRARIES, log, stop, e);
}
