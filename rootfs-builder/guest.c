#define _GNU_SOURCE
#include "guest.h"

#include "chroot.h"
#include "fd.h"
#include "file.h"
#include "text.h"
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define PLACE "/usr/lib/brig"

void guest_done(struct guest *g)
{
	for (size_t i = 0; i < g->n; i++) {
		free(g->file[i].name);
		free(g->file[i].bytes);
	}
	g->n = 0;
}

static int is_python_file_name(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && text_ends_in(entry->d_name, ".py");
}

static int load_guest_file(struct guest *g, const char *folder, const char *name, struct err *e)
{
	struct guest_file *f = &g->file[g->n];
	struct bytes       b = { 0 };
	char               path[1400];

	if (g->n == ARRAY_LEN(g->file))
		return err_set(e, ERR_LIMIT, "%s: more than %zu files", folder, ARRAY_LEN(g->file));
	if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
		return err_set(e, ERR_BAD_SPEC, "%.60s...: path too long", folder);
	if (file_read(AT_FDCWD, path, MIB, &b, e) < 0)
		return -1;
	*f = (struct guest_file){ strdup(name), b.data, b.len };
	g->n++;
	return f->name ? 0 : err_set(e, ERR_LIMIT, "out of memory");
}

int guest_load(struct guest *ret, const char *folder, struct err *e)
{
	struct dirent **found = NULL;
	int             n = scandir(folder, &found, is_python_file_name, alphasort), result = 0;

	if (n < 0)
		return err_sys(e, "%s, which has what runs programs inside a jail", folder);
	for (int i = 0; i < n; i++) {
		if (result == 0)
			result = load_guest_file(ret, folder, found[i]->d_name, e);
		free(found[i]);
	}
	free(found);
	if (result == 0 && n == 0)
		return err_set(e, ERR_MISSING, "%s: no file of what runs programs inside a jail", folder);
	return result;
}

/* Adds name, length and content, so that two different sets of files cannot have the same digest. */
static int digest_guest_file(struct digest *d, const struct guest_file *f, struct err *e)
{
	char head[320];
	int  n = snprintf(head, sizeof head, "%s %zu\n", f->name, f->len);

	return digest_add(d, head, (size_t)n, e) < 0 ? -1 : digest_add(d, f->bytes, f->len, e);
}

int guest_add_to_digest(const struct guest *g, struct recipe *r, struct err *e)
{
	scoped_digest d = { 0 };

	if (digest_init(&d, e) < 0 || digest_add(&d, r->sha256, DIGEST_HEX, e) < 0)
		return -1;
	for (size_t i = 0; i < g->n; i++)
		if (digest_guest_file(&d, &g->file[i], e) < 0)
			return -1;
	return digest_finish(&d, r->sha256, e);
}

static int write_guest_files(int root, const struct guest *g, struct err *e)
{
	char path[320];

	if (tree_make_dir(root, PLACE, e) < 0)
		return -1;
	for (size_t i = 0; i < g->n; i++) {
		snprintf(path, sizeof path, PLACE "/%s", g->file[i].name);
		if (tree_write(root, path, g->file[i].bytes, g->file[i].len, e) < 0)
			return -1;
	}
	return 0;
}

int guest_apply(int root, const struct guest *g, int log, int stop, struct err *e)
{
	static const char *const argv[] = { "/usr/bin/python3", "-I", "-S", "-B", PLACE "/pack.py", NULL };
	scoped_fd                python = tree_open(root, argv[0], O_PATH);

	if (python < 0)
		return errno == ENOENT ? 0 : err_sys(e, "%s", argv[0]);
	return write_guest_files(root, g, e) < 0 ? -1 : chroot_run(root, argv, false, log, stop, e);
}
