#define _GNU_SOURCE
#include "unpack.h"

#include "build_log.h"
#include "fd.h"
#include "file.h"
#include "process.h"
#include "text.h"
#include "tree.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARCHIVES "/var/cache/apt/archives"
/* Before anything is extracted. mmdebstrap's own hook makes no links from version 1.4 on, and so none for Debian 12. */
#define MERGE_USR "set -e; cd \"$1\"; for dir in bin sbin lib lib64; do mkdir -p usr/$dir; ln -sT usr/$dir $dir; done"

static void text_freep(char **text)
{
	free(*text);
}

/* --- how apt fetches: the machine's own settings --- */

/*
 * mmdebstrap does not read the machine's apt.conf. Settings that decide whether
 * and how a mirror can be reached (a proxy, a wrong clock) are copied, and no
 * others: none of these can make apt trust what is not signed.
 */
static const char *const fetch_settings[] = {
	"Acquire::http::",   "Acquire::https::",    "Acquire::Check-Valid-Until ", "Acquire::Check-Date ",
	"Acquire::Retries ", "Acquire::ForceIPv4 ", "Acquire::ForceIPv6 ",
};

static bool is_apt_fetch_setting(const char *line)
{
	for (size_t i = 0; i < ARRAY_LEN(fetch_settings); i++)
		if (strncmp(line, fetch_settings[i], strlen(fetch_settings[i])) == 0)
			return true;
	return false;
}

static int create_work_file(int dir, const char *name, struct err *e)
{
	int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 ? err_sys(e, "%s", name) : fd;
}

static int copy_fetch_settings(int from, int to, struct err *e)
{
	scoped_bytes b = { 0 };

	if (lseek(from, 0, SEEK_SET) < 0 || file_read_fd(from, "apt-config", MIB, &b, e) < 0)
		return -1;
	for (const char *p = b.data; *p;) {
		size_t n = strcspn(p, "\n");

		if (is_apt_fetch_setting(p) && file_write_all(to, p, n + (p[n] == '\n')) < 0)
			return err_sys(e, "apt.conf");
		p += n + (p[n] == '\n');
	}
	return 0;
}

#define ENV "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "SOURCE_DATE_EPOCH=315532800"

static const char *const apt_env[] = { ENV, NULL };

static int write_apt_conf(const struct unpack *u, struct err *e)
{
	static const char *const argv[] = { "apt-config", "dump", "Acquire", NULL };
	/* apt's own user cannot enter the workspace, which may be below a directory that is closed to others. */
	static const char as_root[] = "APT::Sandbox::User \"root\";\n";
	scoped_fd         nothing = open("/dev/null", O_RDONLY | O_CLOEXEC),
		all = create_work_file(u->work, "apt-config", e),
		  conf = -1;

	if (nothing < 0)
		return err_sys(e, "/dev/null");
	if (all < 0)
		return -1;
	conf = create_work_file(u->work, "apt.conf", e);
	if (conf < 0)
		return -1;
	struct process p = {
		.argv = argv, .env = apt_env, .place = u->work, .in = nothing, .out = all, .stop = u->stop
	};

	if (process_run(&p, e) < 0)
		return -1;
	if (file_write_all(conf, as_root, strlen(as_root)) < 0)
		return err_sys(e, "apt.conf");
	return copy_fetch_settings(all, conf, e);
}

/* --- packages that are not there --- */

/* Names the recipe's packages that apt did not find. If apt complains of something else, *e stays as it is. */
static int err_missing_packages(const struct unpack *u, struct err *e)
{
	char              list[300] = "";
	size_t            n         = 0, i;
	scoped_bytes      log       = { 0 };
	struct recipe_row row;

	if (!build_log_read(u->log, &log))
		return -1;
	recipe_foreach(u->recipe->packages, row, i) {
		/* The whole line that apt prints, because one name can be part of another. */
		char unknown[1100], virtual[1100];

		snprintf(unknown, sizeof unknown, "E: Unable to locate package %s\n", row.key);
		snprintf(virtual, sizeof virtual, "E: Package '%s' has no installation candidate\n", row.key);
		if (n < sizeof list && (strstr(log.data, unknown) || strstr(log.data, virtual)))
			n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", row.key);
	}
	if (!n)
		return -1;
	return err_set(e, ERR_MISSING,
		       "packages: Debian %s has no %s; name what it has in its place, or take it out (a row of omit, "
		       "if another recipe names it)",
		       u->recipe->suite, list);
}

/* --- mmdebstrap --- */

static char *make_include_option(const struct recipe *r)
{
	char             *text = NULL;
	size_t            len, i;
	struct recipe_row row;
	FILE             *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	fputs("--include=", out);
	recipe_foreach(r->packages, row, i) {
		fprintf(out, "%s%s", i ? "," : "", row.key);
	}
	if (r->requirements)
		fputs("," RECIPE_PIP, out);
	fclose(out); /* text is valid only from here on */
	return text;
}

static int write_installed_package(int fd, const char *name, struct err *e)
{
	return dprintf(fd,
		       "Package: %s\nStatus: install ok installed\nArchitecture: all\nMulti-Arch: "
		       "foreign\nMaintainer: -\n"
		       "Version: 9999:0\nDescription: omitted\n\n",
		       name) < 0
		       ? err_sys(e, "omit")
		       : 0;
}

/*
 * apt does not fetch a package that it believes to be installed. The version is
 * very high, so that any "at least" is fulfilled; a package that depends on an
 * exact version fails the build. usr-is-merged: the other way to fulfil what
 * depends on it would be a package that moves files by its scripts.
 */
static int write_omitted_packages(const struct unpack *u, struct err *e)
{
	scoped_fd         fd = create_work_file(u->work, "omit", e);
	struct recipe_row row;
	size_t            i;

	if (fd < 0 || write_installed_package(fd, "usr-is-merged", e) < 0)
		return -1;
	recipe_foreach(u->recipe->omit, row, i) {
		if (write_installed_package(fd, row.key, e) < 0)
			return -1;
	}
	return 0;
}

/* mmdebstrap can write only to the place: a hostile package that escapes its tree cannot reach the builder's files,
 * which are beside it. */
static int run_mmdebstrap(const struct unpack *u, int place, const char *packages, const char *into, const char *aptopt,
			  const char *tmpdir, int in, struct err *e)
{
	const char *const env[] = {
		ENV,
		/* all files will belong to the user who builds, who may not be able to chown */
		"TAR_OPTIONS=--no-same-owner",
		/* if mmdebstrap is killed, its temporary files are removed with the workspace */
		tmpdir,
		NULL,
	};
	const char *const argv[] = {
		"mmdebstrap",
		"--variant=extract",                 /* no maintainer scripts, and only the packages of the recipe */
		"--mode=root",
		"--format=directory",
		"--setup-hook=" MERGE_USR,
		"--setup-hook=cat \"${1%/*/*}/omit\" >>\"$1/var/lib/dpkg/status\"",
		/* no program runs in the tree; the names of the archives have the versions */
		"--skip=chroot/mount,cleanup/apt,output/dev",
		aptopt, packages, "", into, "-", NULL, /* the sources, which name the suite, come on stdin */
	};
	struct process p = {
		.argv = argv, .env = env, .place = place, .network = true, .in = in, .out = u->log, .stop = u->stop,
	};

	if (process_run(&p, e) == 0)
		return 0;
	if (e->errnum == ENOENT)
		return err_set(e, ERR_MISSING, "mmdebstrap is not on this machine; apt install mmdebstrap");
	return e->errnum ? -1 : err_missing_packages(u, e);
}

int unpack_apply(const struct unpack *u, struct err *e)
{
	scoped(text_freep) char *packages = make_include_option(u->recipe);
	scoped(text_freep) char *into = NULL, *aptopt = NULL, *tmpdir = NULL;
	int                      head = (int)(strrchr(u->place, '/') - u->place);
	scoped_fd                in = -1, place = -1;

	if (access(SOURCES_KEYRING, R_OK) < 0)
		return err_set(e, ERR_MISSING,
			       SOURCES_KEYRING " is not on this machine; apt install debian-archive-keyring");
	if (write_apt_conf(u, e) < 0 || write_omitted_packages(u, e) < 0)
		return -1;
	in = create_work_file(u->work, "sources", e);
	if (in < 0)
		return -1;
	if (file_write_all(in, u->sources->lines, u->sources->len) < 0 || lseek(in, 0, SEEK_SET) < 0)
		return err_sys(e, "sources");
	place = mkdirat(u->work, UNPACK_PLACE, 0700) < 0
			? -1
			: openat(u->work, UNPACK_PLACE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (place < 0)
		return err_sys(e, "make a place to unpack in");
	if (!packages || asprintf(&into, "%s/tree", u->place) < 0 ||
	    asprintf(&aptopt, "--aptopt=%.*s/apt.conf", head, u->place) < 0 ||
	    asprintf(&tmpdir, "TMPDIR=%s", u->place) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (run_mmdebstrap(u, place, packages, into, aptopt, tmpdir, in, e) < 0)
		return -1;
	/* Takes the tree out of the place. Anything else there was put there by hostile packages, and is removed. */
	if (renameat(place, "tree", u->work, "tree") < 0)
		return err_sys(e, "the tree that mmdebstrap made");
	return tree_remove(u->work, UNPACK_PLACE, e);
}

/* --- what came --- */

/* NAME_VERSION_ARCH.deb; neither name nor version holds "_". apt writes a colon in a version as %3a. */
static json_t *package_from_archive_name(const char *file)
{
	const char *first = strchr(file, '_'), *last = strrchr(file, '_');
	char        version[256];
	size_t      n = 0;

	if (!first || last == first)
		return NULL;
	for (const char *p = first + 1; p < last && n < sizeof version - 1; p++) {
		bool colon = begins_with(p, "%3a");

		version[n++] = colon ? ':' : *p;
		p += colon ? 2 : 0;
	}
	version[n] = 0;
	return json_pack("{s:s%, s:s}", "name", file, (size_t)(first - file), "version", version);
}

static json_t *list_deb_archives(const struct tree *t)
{
	json_t *list = json_array();

	for (size_t i = 0; i < t->n; i++) {
		const char *path = t->entry[i].path;
		json_t     *one;

		if (strncmp(path, ARCHIVES "/", strlen(ARCHIVES "/")) != 0 || !text_ends_in(path, ".deb"))
			continue;
		one = package_from_archive_name(path + strlen(ARCHIVES "/"));
		if (one)
			json_array_append_new(list, one);
	}
	return list;
}

/* What mmdebstrap copies from this machine, or writes about it. It would make the digest depend on the machine, and
 * reveal things about it. */
static const char *const traces[] = {
	"/dev",
	"/etc/apt/apt.conf.d/99mmdebstrap",
	"/etc/apt/sources.list",
	"/etc/fstab",
	"/etc/hostname",
	"/etc/resolv.conf",
	"/var/cache/apt",
	"/var/lib/apt",
	"/var/lib/dpkg/arch",
	"/var/lib/dpkg/status",
	"/var/log",
};

static int remove_host_traces(int root, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(traces); i++)
		if (tree_remove_path(root, traces[i], e) < 0)
			return -1;
	return 0;
}

json_t *unpack_list_packages(int root, struct err *e)
{
	scoped_tree  t    = { 0 };
	scoped_json *list = NULL;

	if (tree_scan(root, &t, e) < 0)
		return NULL;
	list = list_deb_archives(&t);
	if (json_array_size(list) == 0) {
		err_set(e, ERR_BROKEN, "mmdebstrap left no archive in " ARCHIVES);
		return NULL;
	}
	return remove_host_traces(root, e) < 0 ? NULL : json_incref(list);
}
