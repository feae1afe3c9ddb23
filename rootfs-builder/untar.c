#define _GNU_SOURCE
#include "untar.h"

#include "fd.h"
#include "process.h"
#include "text.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define BLOCK      (64 * 1024)
#define MEMORY_MAX GIB /* of address space: the archive chooses the size of a dictionary of xz or a window of zstd */
#define WHITEOUT   ".wh."
#define OPAQUE     ".wh..wh..opq"

/* Memory shared with the process that reads the archive. What that process writes here is as hostile as the archive. */
struct answer {
	struct extraction count;
	struct err        err;
	char              hex[DIGEST_HEX + 1];
};

/* Unpacking one archive, for the process that reads it. */
struct job {
	const struct untar *untar;
	struct answer      *answer;
	struct extraction   into;
	uint64_t            stream_max;
};

struct stream {
	struct archive *file; /* the file as an archive with one member, its uncompressed bytes */
	struct digest   sum;
	uint64_t        bytes, bytes_max;
	bool            ended; /* the file is empty */
	struct err      why; /* of stream_read_decompressed(); libarchive would not keep the message */
	bool            refused;
};

static void archive_freep(struct archive **a)
{
	archive_read_free(*a);
}
#define scoped_archive scoped(archive_freep) struct archive

static const char *archive_error_text(struct archive *a)
{
	const char *words = archive_error_string(a);

	return words ? words : "no reason is known";
}

/* --- the bytes, not compressed --- */

static int stream_open_stdin(struct stream *s, struct err *e)
{
	struct archive       *a = s->file;
	struct archive_entry *entry;
	int                   r;

	/* If libarchive was built without one of these, it starts a program instead; there is none in the tree, so that
	 * is an error. */
	(void)archive_read_support_filter_gzip(a);
	(void)archive_read_support_filter_bzip2(a);
	(void)archive_read_support_filter_xz(a);
	(void)archive_read_support_filter_zstd(a);
	(void)archive_read_support_filter_lz4(a);
	(void)archive_read_support_filter_lzma(a);
	(void)archive_read_support_filter_lzip(a);
	if (archive_read_support_format_raw(a) != ARCHIVE_OK || archive_read_support_format_empty(a) != ARCHIVE_OK ||
	    archive_read_open_fd(a, 0, BLOCK) != ARCHIVE_OK)
		return err_set(e, ERR_BAD_SPEC, "%.300s", archive_error_text(a));
	r        = archive_read_next_header(a, &entry);
	s->ended = r == ARCHIVE_EOF;
	return r == ARCHIVE_OK || s->ended ? 0 : err_set(e, ERR_BAD_SPEC, "%.300s", archive_error_text(a));
}

static int stream_set_error(struct stream *s, struct archive *a)
{
	s->refused = true;
	archive_set_error(a, EINVAL, "refused");
	return ARCHIVE_FATAL;
}

static la_ssize_t stream_read_decompressed(struct archive *a, void *context, const void **ret)
{
	struct stream *s = context;
	size_t         n = 0;
	la_int64_t     offset;
	char           most[32];
	int            r = s->ended ? ARCHIVE_EOF : archive_read_data_block(s->file, ret, &n, &offset);

	if (r == ARCHIVE_EOF)
		return 0;
	if (r != ARCHIVE_OK) {
		err_set(&s->why, ERR_BAD_SPEC, "%.300s", archive_error_text(s->file));
		return stream_set_error(s, a);
	}
	s->bytes += n;
	if (s->bytes > s->bytes_max) {
		err_set(&s->why, ERR_LIMIT, "it has more than %s when it is not compressed; --size-max allows more",
			text_from_size(s->bytes_max, most, sizeof most));
		return stream_set_error(s, a);
	}
	return digest_add(&s->sum, *ret, n, &s->why) < 0 ? stream_set_error(s, a) : (la_ssize_t)n;
}

/* --- entries --- */

static int write_entry_data(struct archive *a, int fd, const char *path, uint64_t size, struct err *e)
{
	const void *bytes;
	size_t      n;
	la_int64_t  at;
	int         r;

	while ((r = archive_read_data_block(a, &bytes, &n, &at)) == ARCHIVE_OK) {
		if (at < 0 || (uint64_t)at > size || n > size - (uint64_t)at)
			return err_set(e, ERR_BAD_SPEC, "%.200s: has more bytes than its header has", path);
		for (size_t done = 0; done < n;) {
			ssize_t now = pwrite(fd, (const char *)bytes + done, n - done, at + (off_t)done);

			if (now < 0)
				return err_sys(e, "%.200s", path);
			done += (size_t)now;
		}
	}
	if (r != ARCHIVE_EOF)
		return err_set(e, ERR_BAD_SPEC, "%.150s: %.300s", path, archive_error_text(a));
	return ftruncate(fd, (off_t)size) < 0 ? err_sys(e, "%.200s", path) : 0; /* a hole at the end */
}

static int unpack_entry(struct extraction *p, struct archive *a, struct archive_entry *entry, const char *path,
			struct err *e)
{
	const char *target = archive_entry_symlink(entry), *other = archive_entry_hardlink(entry);
	int64_t     size = archive_entry_size(entry);
	scoped_fd   fd   = -1;
	char        from[PATH_MAX];

	if (other)
		return extract_normalize_path(other, from, e) < 0 ? -1 : extract_hardlink_copy(p, path, from, e);
	switch (archive_entry_filetype(entry)) {
	case AE_IFREG:
		if (size < 0)
			return err_set(e, ERR_BAD_SPEC, "%.200s: invalid size", path);
		fd = extract_file(p, path, (uint64_t)size, archive_entry_perm(entry), e);
		return fd < 0 ? -1 : write_entry_data(a, fd, path, (uint64_t)size, e);
	case AE_IFDIR:
		return extract_dir(p, path, e);
	case AE_IFLNK:
		return extract_link(p, path, target ? target : "", e);
	default: /* a device, a pipe, a socket */
		return extract_skip_entry(p, e);
	}
}

/* ".wh.NAME" removes NAME; ".wh..wh..opq" empties its directory. Other names that begin with ".wh..wh." are notes of
 * aufs, and are ignored. */
static int apply_whiteout(struct extraction *p, const char *path, const char *last, struct err *e)
{
	const char *name = last + strlen(WHITEOUT);
	char        gone[PATH_MAX];
	int         head = (int)(last - path);

	if (strcmp(last, OPAQUE) == 0) {
		snprintf(gone, sizeof gone, "%.*s", head - 1, path);
		return extract_whiteout_dir(p, gone, e);
	}
	if (strncmp(name, WHITEOUT, strlen(WHITEOUT)) == 0)
		return 0;
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return err_set(e, ERR_BAD_SPEC, "%.200s: a whiteout of no name", path);
	snprintf(gone, sizeof gone, "%.*s%s", head, path, name);
	return extract_whiteout_name(p, gone, e);
}

static int unpack_entry_or_whiteout(struct job *j, struct archive *a, struct archive_entry *entry, bool whiteouts,
				    struct err *e)
{
	char        path[PATH_MAX];
	const char *name = archive_entry_pathname(entry), *last;
	bool        is_whiteout;

	if (!name || !*name)
		return err_set(e, ERR_BAD_SPEC, "an entry without a name that can be shown");
	if (extract_normalize_path(name, path, e) < 0)
		return -1;
	last        = *path ? strrchr(path, '/') + 1 : path;
	is_whiteout = j->untar->is_layer && strncmp(last, WHITEOUT, strlen(WHITEOUT)) == 0;
	if (is_whiteout != whiteouts)
		return 0;
	return whiteouts ? apply_whiteout(&j->into, path, last, e) : unpack_entry(&j->into, a, entry, path, e);
}

/* --- the archive --- */

static int unpack_entries(struct job *j, struct archive *a, struct stream *s, bool whiteouts, struct err *e)
{
	struct archive_entry *entry;
	const void           *bytes;
	la_ssize_t            left = 0;
	int                   r;

	while ((r = archive_read_next_header(a, &entry)) == ARCHIVE_OK || r == ARCHIVE_WARN)
		if (unpack_entry_or_whiteout(j, a, entry, whiteouts, e) < 0)
			return -1;
	if (r == ARCHIVE_EOF)
		while ((left = stream_read_decompressed(a, s, &bytes)) >
		       0) /* bytes after the end of the archive belong to its digest, too */
			;
	return r == ARCHIVE_EOF && left == 0 ? 0
					     : err_set(e, ERR_BAD_SPEC, "no sound tar archive: %.300s",
						       archive_error_text(a));
}

static int unpack_pass(struct job *j, struct stream *s, bool whiteouts, struct err *e)
{
	scoped_archive *a = archive_read_new();

	s->file = archive_read_new();
	if (!a || !s->file || archive_read_support_format_tar(a) != ARCHIVE_OK)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (lseek(0, 0, SEEK_SET) < 0)
		return err_sys(e, "read it from its beginning");
	if (digest_init(&s->sum, e) < 0 || stream_open_stdin(s, e) < 0)
		return -1;
	if (archive_read_open(a, s, NULL, stream_read_decompressed, NULL) != ARCHIVE_OK)
		return err_set(e, ERR_BAD_SPEC, "no sound tar archive: %.300s", archive_error_text(a));
	return unpack_entries(j, a, s, whiteouts, e) < 0 ? -1 : digest_finish(&s->sum, j->answer->hex, e);
}

static void stream_free_archive(struct stream *s)
{
	archive_read_free(s->file);
	digest_done(&s->sum);
}

/* A layer's whiteouts remove entries of lower layers, and none of its own, wherever they are in the archive. So a first
 * pass applies them. */
static int unpack_archive(struct job *j, struct err *e)
{
	for (int whiteouts = j->untar->is_layer && !j->untar->is_first; whiteouts >= 0; whiteouts--) {
		scoped(stream_free_archive) struct stream s = { .bytes_max = j->stream_max };

		if (unpack_pass(j, &s, whiteouts, e) < 0) {
			if (s.refused)
				*e = s.why;
			return -1;
		}
	}
	return 0;
}

/* The process that reads the archive: its / is the tree, and it can reach nothing else. */
static int unpack_process_main(void *context)
{
	struct job *j = context;
	struct err  e = { 0 };
	int         r;

	j->into.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (j->into.root < 0 || setrlimit(RLIMIT_AS, &(struct rlimit){ MEMORY_MAX, MEMORY_MAX }) < 0)
		r = err_sys(&e, "prepare");
	else
		r = unpack_archive(j, &e);
	j->answer->count = j->into;
	j->answer->err   = e;
	return r < 0 ? 1 : 0;
}

static int err_unpack_process(const struct untar *u, struct answer *a, const struct err *why, struct err *e)
{
	a->err.text[sizeof a->err.text - 1] = 0;
	if (why->errnum || !a->err.text[0]) { /* a signal, a full disk, or the process was killed: it left no message */
		*e = *why;
		return err_wrap(e, "%s", u->name);
	}
	text_make_plain(a->err.text);
	return err_set(e, ERR_BAD_SPEC, "%s: %s", u->name, a->err.text);
}

/* libarchive converts names to the locale's charset, and damages those that it cannot convert. */
static int process_run_in_utf8(const struct process *p, struct err *e)
{
	locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0), before;
	int      r;

	if (!utf8)
		return err_set(e, ERR_MISSING, "the locale C.UTF-8 is not on this machine");
	before = uselocale(utf8);
	r      = process_run(p, e);
	uselocale(before);
	freelocale(utf8);
	return r;
}

int untar_apply(const struct untar *u, struct extraction *total, char hex[DIGEST_HEX + 1], struct err *e)
{
	static const char *const argv[] = { "the reader of archives", NULL };
	struct answer           *a = mmap(NULL, sizeof *a, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct job     j = { .untar = u, .answer = a, .into = *total, .stream_max = 2 * total->bytes_max + 64 * MIB };
	struct process p = { .argv = argv, .run = unpack_process_main, .context = &j, .place = u->place, .jailed = true,
			     .in = u->from, .out = u->log, .stop = u->stop };
	struct err     why;
	int            r;

	if (a == MAP_FAILED)
		return err_sys(e, "memory to share");
	r = process_run_in_utf8(&p, &why);
	if (r < 0)
		r = err_unpack_process(u, a, &why, e);
	a->count.root      = total->root;
	a->count.bytes_max = total->bytes_max;
	*total             = a->count;
	snprintf(hex, DIGEST_HEX + 1, "%.*s", DIGEST_HEX, a->hex);
	munmap(a, sizeof *a);
	return r;
}
