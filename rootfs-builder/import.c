#define _GNU_SOURCE
#include "import.h"

#include "fd.h"
#include "file.h"
#include "layout.h"
#include "extract.h"
#include "process.h"
#include "text.h"
#include "tree.h"
#include "untar.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- a directory --- */

struct walk {
	const struct import *import;
	struct extraction   *into;
	dev_t                device; /* of the source: mounts inside it are not copied */
	struct stat          store;
	char                 path[PATH_MAX]; /* of the entry in the tree */
};

static int copy_walked_file(struct walk *w, int dir, const char *name, struct err *e)
{
	struct stat st;
	scoped_fd   from = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), to = -1;

	if (from < 0 || fstat(from, &st) < 0)
		return err_sys(e, "%.200s", w->path);
	if (!S_ISREG(st.st_mode)) /* it has changed since fstatat() */
		return extract_skip_entry(w->into, e);
	to = extract_file(w->into, w->path, (uint64_t)st.st_size, st.st_mode, e);
	if (to < 0)
		return -1;
	/* No more than was counted, even if the file grows. */
	return tree_copy_bytes(from, to, (uint64_t)st.st_size) < 0 ? err_sys(e, "%.200s", w->path) : 0;
}

static int copy_walked_entry(void *context, int dir, const char *name, struct err *e);

static int copy_walked_dir(struct walk *w, int dir, const char *name, const struct stat *st, struct err *e)
{
	if (st->st_dev == w->store.st_dev && st->st_ino == w->store.st_ino)
		return err_set(e, ERR_BAD_SPEC, "%.200s: the store itself is in there", w->path);
	if (extract_dir(w->into, w->path, e) < 0)
		return -1;
	if (st->st_dev != w->device)
		return 0;
	return tree_each_in_dir(openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), w->path,
				copy_walked_entry, w, e);
}

static int copy_walked_entry(void *context, int dir, const char *name, struct err *e)
{
	struct walk *w   = context;
	size_t       len = strlen(w->path);
	char         text[PATH_MAX + 256];
	struct stat  st;
	int          r;

	snprintf(text, sizeof text, "%s/%s", w->path, name);
	if (extract_normalize_path(text, w->path, e) < 0 || take_stop_signal(w->import->stop, e) < 0)
		return -1;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (S_ISLNK(st.st_mode) && tree_read_link(dir, name, text) < 0))
		return err_sys(e, "%.200s", w->path);
	r = S_ISREG(st.st_mode)   ? copy_walked_file(w, dir, name, e)
	    : S_ISLNK(st.st_mode) ? extract_link(w->into, w->path, text, e)
	    : S_ISDIR(st.st_mode) ? copy_walked_dir(w, dir, name, &st, e)
				  : extract_skip_entry(w->into, e);
	w->path[len] = 0;
	return r;
}

static int import_dir(const struct import *i, int from, struct extraction *p, struct err *e)
{
	struct walk w = { .import = i, .into = p };
	struct stat st;

	if (fstat(from, &st) < 0 || fstat(i->store, &w.store) < 0)
		return err_sys(e, "%.200s", i->source);
	w.device = st.st_dev;
	return tree_each_in_dir(openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), i->source, copy_walked_entry,
				&w, e);
}

static int make_empty_tree(const struct import *i, struct extraction *p, struct err *e)
{
	if (mkdirat(i->work->dir, "tree", 0755) < 0)
		return err_sys(e, "make the tree");
	p->root = openat(i->work->dir, "tree", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return p->root < 0 ? err_sys(e, "make the tree") : 0;
}

/* --- an image --- */

static int import_layer(const struct import *i, int dir, const struct layout *im, size_t n, struct extraction *p,
			struct err *e)
{
	const struct layout_layer *l = &im->layer[n];
	char                       name[64], hex[DIGEST_HEX + 1];
	struct untar               u = { .name = name, .is_layer = true, .is_first = n == 0, .place = p->root };
	scoped_fd                  from = layout_open_layer(dir, l, e);

	snprintf(name, sizeof name, "layer %zu of %zu", n + 1, im->n);
	if (from < 0)
		return err_wrap(e, "%s", name);
	u.from = from;
	u.log  = i->log;
	u.stop = i->stop;
	if (untar_apply(&u, p, hex, e) < 0)
		return -1;
	if (strcmp(hex, l->diff_id) != 0)
		return err_set(e, ERR_BAD_SPEC, "%s: its content has another digest than in the image: sha256 %s",
			       name,
			       hex);
	return 0;
}

static int import_container_image(const struct import *i, int dir, enum layout_kind kind, struct extraction *p,
			char sha256[DIGEST_HEX + 1], struct err *e)
{
	struct layout *im = malloc(sizeof *im); /* a large one */
	int            r;

	if (!im)
		return err_set(e, ERR_LIMIT, "out of memory");
	r = layout_read(dir, kind, im, stderr, e);
	if (r == 0)
		fprintf(stderr, "%s for %s, sha256:%.12s, %zu layer%s\n", layout_kind_name(kind), im->platform,
			im->sha256, im->n, im->n == 1 ? "" : "s");
	for (size_t n = 0; r == 0 && n < im->n; n++)
		r = import_layer(i, dir, im, n, p, e);
	if (r == 0)
		memcpy(sha256, im->sha256, sizeof im->sha256);
	free(im);
	return r;
}

/* The unpacked archive is not a tree but an image: unpacks the image's layers into a new tree. */
static int unpack_image_in_archive(const struct import *i, enum layout_kind kind, struct extraction *p,
				   char sha256[DIGEST_HEX + 1], struct err *e)
{
	scoped_fd         image = p->root;
	struct extraction again = { .root = -1, .bytes_max = i->size_max };
	int               r;

	p->root = -1;
	if (renameat(i->work->dir, "tree", i->work->dir, "image") < 0)
		return err_sys(e, "put the image aside");
	r = make_empty_tree(i, &again, e) < 0 ? -1 : import_container_image(i, image, kind, &again, sha256, e);
	*p = again;
	return r < 0 ? -1 : tree_remove(i->work->dir, "image", e);
}

/* --- the whole --- */

static void extraction_done(struct extraction *p)
{
	fd_closep(&p->root);
}

static int import_source(const struct import *i, int from, bool is_dir, struct extraction *p,
			 char sha256[DIGEST_HEX + 1], struct err *e)
{
	enum layout_kind kind    = is_dir ? layout_kind(from) : LAYOUT_NONE;
	struct untar archive = { .name = i->source, .from = from, .place = p->root, .log = i->log, .stop = i->stop };
	char             hex[DIGEST_HEX + 1];

	if (kind != LAYOUT_NONE)
		return import_container_image(i, from, kind, p, sha256, e);
	if ((is_dir ? import_dir(i, from, p, e) : untar_apply(&archive, p, hex, e)) < 0)
		return -1;
	kind = is_dir ? LAYOUT_NONE : layout_kind(p->root);
	return kind == LAYOUT_NONE ? 0 : unpack_image_in_archive(i, kind, p, sha256, e);
}

int import_apply(const struct import *i, char sha256[DIGEST_HEX + 1], struct err *e)
{
	scoped_fd                       from = open(i->source, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	scoped(extraction_done) struct extraction p    = { .root = -1, .bytes_max = i->size_max };
	struct stat                     st;

	sha256[0] = 0;
	if (from < 0 || fstat(from, &st) < 0)
		return err_sys(e, "%.200s", i->source);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return err_set(e, ERR_BAD_SPEC, "%.200s: neither a directory nor a regular file", i->source);
	if (make_empty_tree(i, &p, e) < 0 || import_source(i, from, S_ISDIR(st.st_mode), &p, sha256, e) < 0)
		return -1;
	if (p.left_out)
		fprintf(stderr, "left out: %" PRIu64 " device node%s, pipes or sockets\n", p.left_out,
			p.left_out == 1 ? "" : "s");
	if (p.set_id)
		fprintf(stderr, "not set any more: set-user-ID and set-group-ID bits of %" PRIu64 " file%s\n", p.set_id,
			p.set_id == 1 ? "" : "s");
	return 0;
}
