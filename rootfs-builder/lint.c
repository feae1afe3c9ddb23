#define _GNU_SOURCE
#include "lint.h"

#include "cell_path.h"
#include "elf_file.h"
#include "fd.h"
#include "file.h"
#include "text.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define CONF_DIR  "/etc/ld.so.conf.d/"
#define CONF_MAX  (64 * 1024)
#define DIRS_MAX  64
#define WORDS_MAX 400

struct lint {
	int         root;
	struct tree tree;
	char       *dirs[DIRS_MAX]; /* where the loader looks for libraries */
	size_t      n_dirs;
	enum lint_kind kind;
	size_t      counted; /* findings that are counted, and are no error */
};

/* The text of a finding. A rule returns true if it finds nothing, and then leaves the text as it is. */
typedef char words[WORDS_MAX];

static bool printf_like(2, 3) finding(words why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, WORDS_MAX, fmt, ap);
	va_end(ap);
	return false;
}

/* --- rules about the entry itself --- */

static bool entry_has_printable_name(const struct lint *l, const struct tree_entry *entry, words why)
{
	(void)l;
	if (!text_is_plain(entry->path))
		return finding(why, "its name is not printable UTF-8");
	if (entry->target && !text_is_plain(entry->target))
		return finding(why, "its target is not printable UTF-8");
	return true;
}

static bool entry_has_plain_type(const struct lint *l, const struct tree_entry *entry, words why)
{
	(void)l;
	return entry->type != TREE_OTHER || finding(why, "a device node, socket or pipe");
}

static bool entry_is_not_setid(const struct lint *l, const struct tree_entry *entry, words why)
{
	(void)l;
	if (entry->type == TREE_LINK || !(entry->mode & (S_ISUID | S_ISGID)))
		return true;
	return finding(why, "%s (mode %04o)", entry->mode & S_ISUID ? "setuid" : "setgid", entry->mode);
}

static bool entry_is_writable_by_owner_alone(const struct lint *l, const struct tree_entry *entry, words why)
{
	(void)l;
	if (entry->type == TREE_LINK || !(entry->mode & (S_IWGRP | S_IWOTH)))
		return true;
	return finding(why, "writable by group or others (mode %04o)", entry->mode);
}

static bool entry_has_trusted_owner(const struct lint *l, const struct tree_entry *entry, words why)
{
	(void)l;
	if (entry->uid == 0 || entry->uid == geteuid())
		return true;
	return finding(why, "belongs to uid %u", entry->uid);
}

static bool entry_has_one_name(const struct lint *l, const struct tree_entry *entry, words why)
{
	(void)l;
	return entry->type != TREE_FILE || entry->links == 1 || finding(why, "has %u names (hard links)", entry->links);
}

static bool entry_has_no_extra_xattrs(const struct lint *l, const struct tree_entry *entry, words why)
{
	char      list[4096];
	ssize_t   n;
	scoped_fd fd = -1;

	if (entry->type != TREE_FILE && entry->type != TREE_DIR)
		return true;
	fd = tree_open_entry(l->root, entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	n  = fd < 0 ? -1 : flistxattr(fd, list, sizeof list - 1);
	if (n < 0)
		return (fd >= 0 && errno == ENOTSUP) || finding(why, "cannot be read: %s", strerror(errno));
	list[n] = 0;
	for (char *at = list; at < list + n; at += strlen(at) + 1)
		if (strcmp(at, "security.selinux") != 0) /* the host puts its label on every new file */
			return finding(why, "has the extended attribute %s", at);
	return true;
}

/* --- links --- */

/* True if the target has more ".." than there are directories above. An absolute target starts at the tree's root. */
static bool link_climbs_out(const struct tree_entry *entry)
{
	int depth = 0;

	if (entry->target[0] != '/')
		for (const char *p = strchr(entry->path + 1, '/'); p; p = strchr(p + 1, '/'))
			depth++;
	for (const char *p = entry->target; *p;) {
		size_t n = strcspn(p, "/");

		if (n == 2 && p[0] == '.' && p[1] == '.')
			depth--;
		else if (n && !(n == 1 && p[0] == '.'))
			depth++;
		if (depth < 0)
			return true;
		p += n + strspn(p + n, "/");
	}
	return false;
}

static bool link_leads_into_tree(const struct lint *l, const struct tree_entry *entry, words why)
{
	scoped_fd fd = -1;

	if (entry->type != TREE_LINK)
		return true;
	if (link_climbs_out(entry))
		return finding(why, "leads out of the tree: -> %.200s", entry->target);
	if (cell_path_is_link_target(entry))
		return true;
	fd = tree_open(l->root, entry->path, O_PATH);
	return fd >= 0 || finding(why, "leads to nothing: -> %.200s (%s)", entry->target, strerror(errno));
}

/* --- libraries --- */

static bool has_library(const struct lint *l, const char *dir, size_t len, const char *name)
{
	char path[2048];

	return snprintf(path, sizeof path, "%.*s/%s", (int)len, dir, name) < (int)sizeof path &&
	       tree_path_has_type(l->root, path, S_IFREG);
}

/* Looks in one directory of a RUNPATH; $ORIGIN is the directory of the file itself. */
static bool has_library_in_runpath(const struct lint *l, const char *dir, size_t len, const struct tree_entry *entry,
				   const char *name)
{
	static const char *const origins[] = { "$ORIGIN", "${ORIGIN}" };
	char                     path[2048];

	for (size_t i = 0; i < ARRAY_LEN(origins); i++) {
		size_t n = strlen(origins[i]);

		if (len < n || strncmp(dir, origins[i], n) != 0)
			continue;
		if (snprintf(path, sizeof path, "%.*s%.*s", (int)(strrchr(entry->path, '/') - entry->path), entry->path,
			     (int)(len - n), dir + n) >= (int)sizeof path)
			return false;
		return has_library(l, path, strlen(path), name);
	}
	return has_library(l, dir, len, name);
}

static bool library_is_found(const struct lint *l, const struct elf *elf, const struct tree_entry *entry,
			     const char *name)
{
	if (strchr(name, '/'))
		return has_library(l, "", 0, name);
	for (const char *p = elf->runpath; p && *p;) {
		size_t n = strcspn(p, ":");

		if (has_library_in_runpath(l, p, n, entry, name))
			return true;
		p += n + (p[n] == ':');
	}
	for (size_t i = 0; i < l->n_dirs; i++)
		if (has_library(l, l->dirs[i], strlen(l->dirs[i]), name))
			return true;
	return false;
}

static bool elf_libraries_are_found(const struct lint *l, const struct tree_entry *entry, const void *bytes, words why)
{
	struct elf elf;
	struct err e;

	if (!elf_has_magic(bytes, entry->size))
		return true;
	if (elf_read(bytes, entry->size, &elf, &e) < 0)
		return finding(why, "%s", e.text);
	if (elf.interpreter && !has_library(l, "", 0, elf.interpreter))
		return finding(why, "its loader is not in the tree: %.200s", elf.interpreter);
	for (size_t i = 0; i < elf.n; i++)
		if (!library_is_found(l, &elf, entry, elf.needed[i]))
			return finding(why, "needs a library that is not in the tree: %.200s", elf.needed[i]);
	return true;
}

static bool entry_libraries_are_found(const struct lint *l, const struct tree_entry *entry, words why)
{
	char  magic[4];
	void *bytes;
	bool  fine;

	if (entry->type != TREE_FILE || entry->size < sizeof magic)
		return true;
	scoped_fd fd = tree_open_entry(l->root, entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0 || pread(fd, magic, sizeof magic, 0) != sizeof magic)
		return finding(why, "cannot be read: %s", strerror(errno));
	if (!elf_has_magic(magic, sizeof magic))
		return true;
	bytes = mmap(NULL, entry->size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return finding(why, "cannot be read: %s", strerror(errno));
	fine = elf_libraries_are_found(l, entry, bytes, why);
	munmap(bytes, entry->size);
	return fine;
}

/* clang-format off */
static const struct {
	const char *name;
	bool      (*look)(const struct lint *, const struct tree_entry *, words why);
	const char *reason;
} rules[] = {
	{ "name",       entry_has_printable_name,
	  "names are printable UTF-8: manifests are JSON, and terminals show them" },
	{ "type",       entry_has_plain_type,
	  "no device nodes, pipes or sockets: a device node gives access to a device of the host" },
	{ "setid",      entry_is_not_setid,
	  "no setuid or setgid files: starting a program must not give rights" },
	{ "attributes", entry_has_no_extra_xattrs,
	  "no extended attributes: file capabilities give rights, and manifests have no attributes" },
	{ "hardlink",   entry_has_one_name,
	  "no hard links: a file with a second name outside could be changed there" },
	{ "owner",      entry_has_trusted_owner,
	  "one owner for all files: the owner of a file can change it" },
	{ "writable",   entry_is_writable_by_owner_alone,
	  "not writable by the group or others" },
	{ "link",       link_leads_into_tree,
	  "no links that lead out of the tree or to no file, except into /proc: "
	  "followed from outside, they name files of the host" },
	{ "libraries",  entry_libraries_are_found,
	  "programs have their loader and libraries in the tree" },
};
/* clang-format on */

/* --- the search path of the loader --- */

static int add_library_dir(struct lint *l, const char *dir, size_t len, struct err *e)
{
	if (l->n_dirs == DIRS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d library directories in " CONF_DIR, DIRS_MAX);
	l->dirs[l->n_dirs] = strndup(dir, len);
	return l->dirs[l->n_dirs++] ? 0 : err_set(e, ERR_LIMIT, "out of memory");
}

static int add_ld_conf(struct lint *l, const struct tree_entry *entry, struct err *e)
{
	scoped_bytes b  = { 0 };
	scoped_fd    fd = tree_open_entry(l->root, entry, O_RDONLY);

	if (fd < 0)
		return err_sys(e, "%s", entry->path);
	if (file_read_fd(fd, entry->path, CONF_MAX, &b, e) < 0)
		return -1;
	for (char *rest = b.data, *line; (line = strsep(&rest, "\n"));)
		if (line[0] == '/' && add_library_dir(l, line, strlen(line), e) < 0)
			return -1;
	return 0;
}

static int find_library_dirs(struct lint *l, struct err *e)
{
	static const char *const built_in[] = { "/lib64", "/usr/lib64", "/lib", "/usr/lib" };

	for (size_t i = 0; i < ARRAY_LEN(built_in); i++)
		if (add_library_dir(l, built_in[i], strlen(built_in[i]), e) < 0)
			return -1;
	for (size_t i = 0; i < l->tree.n; i++) {
		const struct tree_entry *entry = &l->tree.entry[i];

		if (entry->type == TREE_FILE && strncmp(entry->path, CONF_DIR, strlen(CONF_DIR)) == 0 &&
		    add_ld_conf(l, entry, e) < 0)
			return -1;
	}
	return 0;
}

static void lint_done(struct lint *l)
{
	for (size_t i = 0; i < l->n_dirs; i++)
		free(l->dirs[i]);
	tree_done(&l->tree);
}

static size_t lint_entry(struct lint *l, const struct tree_entry *entry, size_t before, FILE *out)
{
	size_t found = 0;

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		words why;

		if (l->kind == LINT_LAYER && rules[i].look == entry_libraries_are_found)
			continue;
		if (rules[i].look(l, entry, why))
			continue;
		if (l->kind == LINT_IMPORT && rules[i].look == entry_libraries_are_found) {
			/* images have tools that are never started */
			l->counted++;
			continue;
		}
		text_make_plain(why); /* it has texts from links and programs */
		if (before + found++ < LINT_SHOWN)
			fprintf(out, "lint: %s: %s [%s]\n",
				!text_is_plain(entry->path) ? "(a name that cannot be shown)" : entry->path, why,
				rules[i].name);
	}
	return found;
}

int lint_tree(int root, enum lint_kind kind, FILE *out, struct err *e)
{
	scoped(lint_done) struct lint l = { .root = root, .kind = kind };
	struct cell_paths            list;
	size_t                        missing = 0, found = 0;
	char                          why[CELL_PLACE_WORDS];

	if (tree_scan(root, &l.tree, e) < 0 || find_library_dirs(&l, e) < 0 || cell_paths_list(&list, e) < 0)
		return -1;
	for (size_t i = 0; i < l.tree.n; i++)
		found += lint_entry(&l, &l.tree.entry[i], found, out);
	if (found > LINT_SHOWN)
		fprintf(out, "lint: and %zu more\n", found - LINT_SHOWN);
	/* the only rule about missing entries, so it is not in the table */
	for (size_t i = 0; i < list.n && kind != LINT_LAYER; i++)
		if (!cell_path_check(&list.place[i], &l.tree, why) && missing++ < LINT_SHOWN)
			fprintf(out, "lint: %s: %s [cell]\n", list.place[i].path, why);
	if (l.counted)
		fprintf(out, "%zu program%s or libraries lack a library; brig rootfs lint names them\n", l.counted,
			l.counted == 1 ? "" : "s");
	if (found + missing)
		return err_set(
			e, ERR_BAD_SPEC, "%zu finding%s%s", found + missing, found + missing == 1 ? "" : "s",
			kind != LINT_ROOTFS || !found
				? ""
				: "; a row of prune takes such a thing out, one of packages brings what it lacks");
	return 0;
}

void lint_print_rules(FILE *out)
{
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		fprintf(out, "  %-11s %s\n", rules[i].name, rules[i].reason);
	fprintf(out, "  %-11s %s\n", "cell",
		"the directories and files that a jail mounts over are there, such as /workspace, /proc and /dev/null");
}
