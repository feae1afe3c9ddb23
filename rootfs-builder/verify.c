#define _GNU_SOURCE
#include "verify.h"

#include "fd.h"
#include "file.h"
#include "manifest.h"
#include "store.h"
#include "text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

struct verify {
	FILE  *out;
	size_t found;
};

static void printf_like(3, 4) report_difference(struct verify *v, const char *path, const char *fmt, ...)
{
	char    what[2 * PATH_MAX];
	va_list ap;

	if (v->found++ >= VERIFY_SHOWN)
		return;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	text_make_plain(what);
	fprintf(v->out, "verify: %s: %s\n", text_is_plain(path) ? path : "(a name that cannot be shown)", what);
}

static void compare_entry(struct verify *v, const struct manifest *was, size_t i, const struct manifest *is, size_t j)
{
	const struct tree_entry *a = &was->tree.entry[i], *b = &is->tree.entry[j];
	char                     mode_a[8], mode_b[8];

	if (a->type != b->type) {
		report_difference(v, a->path, "is a %s, was a %s", manifest_types[b->type], manifest_types[a->type]);
		return;
	}
	manifest_print_mode(a, mode_a);
	manifest_print_mode(b, mode_b);
	if (a->type != TREE_LINK && strcmp(mode_a, mode_b) != 0)
		report_difference(v, a->path, "mode is %s, was %s", mode_b, mode_a);
	if (a->size != b->size)
		report_difference(v, a->path, "has %" PRIu64 " bytes, had %" PRIu64, b->size, a->size);
	else if (strcmp(was->sha256[i], is->sha256[j]) != 0)
		report_difference(v, a->path, "content changed");
	if (a->type == TREE_LINK && strcmp(a->target, b->target) != 0)
		report_difference(v, a->path, "leads to another place than %.200s", a->target);
}

/* Both lists are sorted by path. */
static void compare_manifests(struct verify *v, const struct manifest *was, const struct manifest *is)
{
	size_t i = 0, j = 0;

	while (i < was->tree.n || j < is->tree.n) {
		int order = i == was->tree.n  ? 1
			    : j == is->tree.n ? -1
					      : strcmp(was->tree.entry[i].path, is->tree.entry[j].path);

		if (order < 0)
			report_difference(v, was->tree.entry[i++].path, "is missing");
		else if (order > 0)
			report_difference(v, is->tree.entry[j++].path, "is extra");
		else
			compare_entry(v, was, i++, is, j++);
	}
}

static int report_verify_result(const struct verify *v, const char *digest, struct err *e)
{
	if (v->found > VERIFY_SHOWN)
		fprintf(v->out, "verify: and %zu more\n", v->found - VERIFY_SHOWN);
	if (v->found)
		return err_set(e, ERR_BAD_SPEC,
			       "tree %.12s: %zu difference%s; brig rootfs build --force, or import --force, repairs it",
			       digest, v->found, v->found == 1 ? "" : "s");
	return 0;
}

int verify_tree(const struct tree_store *s, const char *digest, FILE *out, struct err *e)
{
	scoped_store_tree t   = STORE_TREE_NONE;
	scoped_manifest   was = { 0 }, is = { 0 };
	scoped_bytes      b = { 0 };
	struct verify     v = { .out = out };
	struct stat       st;
	char              path[256];

	if (store_open_digest(s->path, digest, &t, e) < 0 || manifest_make(t.tree_fd, &is, e) < 0)
		return -1;
	/* the manifest has no entry for the root directory */
	if (fstat(t.tree_fd, &st) == 0 && (st.st_mode & 07777) != 0755)
		report_difference(&v, "/", "mode is %04o, was 0755", st.st_mode & 07777);
	if (strcmp(is.digest, digest) == 0) /* the digest proves it, so manifest.json need not be trusted */
		return report_verify_result(&v, digest, e);
	snprintf(path, sizeof path, "trees/%s/manifest.json", digest);
	if (file_read(s->dir, path, MANIFEST_MAX, &b, e) < 0 || manifest_parse(b.data, b.len, &was, e) < 0)
		return err_wrap(e, "tree %.12s: it changed, and its manifest cannot be read to show how", digest);
	if (strcmp(was.digest, digest) != 0)
		report_difference(&v, "manifest.json", "was changed as well: its digest is %.12s", was.digest);
	compare_manifests(&v, &was, &is);
	return report_verify_result(&v, digest, e);
}
