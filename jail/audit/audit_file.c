#define _GNU_SOURCE
#include "audit_file.h"

#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_SIZE = sizeof(((struct audit_file *)0)->name) + 16, FOLDER_SIZE = 4096 };

/* NAME.3; NAME itself for 0 */
static const char *print_rotated_name(const struct audit_file *f, unsigned n, char buf[NAME_SIZE])
{
	if (n == 0)
		return f->name;
	snprintf(buf, NAME_SIZE, "%s.%u", f->name, n);
	return buf;
}

/*
 * Appends to a file that exists. A crash may have left its last line incomplete, and without the right to read this
 * cannot be checked.
 */
static int open_newest_file(struct audit_file *f)
{
	scoped_fd   fd = openat(f->folder, f->name,
				O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0640);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	/* A file with a second link may be one that another user linked here so that lines are written into it. */
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return -EBADF;
	fd_closep(&f->fd);
	f->fd   = fd_take(&fd);
	f->dev  = st.st_dev;
	f->ino  = st.st_ino;
	f->torn = st.st_size > 0;
	return 0;
}

/* Renames the oldest file first, so that at every moment each line is in one file. NAME.keep is replaced. */
static int rotate_files(struct audit_file *f)
{
	char        from[NAME_SIZE], to[NAME_SIZE];
	struct stat st;
	unsigned    n = 1;

	/*
	 * Up to the lowest number that is free: a crash between two renames leaves a gap, and to fill it loses no file.
	 */
	while (n < f->keep &&
	       (fstatat(f->folder, print_rotated_name(f, n, to), &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT))
		n++;
	for (; n > 0; n--)
		if (renameat(f->folder, print_rotated_name(f, n - 1, from), f->folder,
			     print_rotated_name(f, n, to)) < 0)
			return -errno;
	return open_newest_file(f);
}

/* Opens the file again if NAME is no longer the one that is open, and rotates if the line does not fit. */
static int reopen_or_rotate(struct audit_file *f, size_t len)
{
	struct stat st;
	int         r;

	if (f->fd < 0 || fstatat(f->folder, f->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_ino != f->ino ||
	    st.st_dev != f->dev) {
		r = open_newest_file(f);
		if (r < 0 || fstat(f->fd, &st) < 0)
			return r < 0 ? r : -errno;
	}
	return st.st_size > 0 && (uint64_t)st.st_size + len + f->torn > f->max_bytes ? rotate_files(f) : 0;
}

/* One write(). On a full disk or at a file size limit only a part is written, and the last line is torn. */
static int write_and_note_torn(struct audit_file *f, const char *bytes, size_t len)
{
	ssize_t n;

	do
		n = write(f->fd, bytes, len);
	while (n < 0 && errno == EINTR);
	f->torn = f->torn ? n != (ssize_t)len : n > 0 && n != (ssize_t)len;
	return n < 0 ? -errno : n == (ssize_t)len ? 0 : -ENOSPC;
}

int audit_file_append_line(struct audit_file *f, const char *line, size_t len)
{
	int r = reopen_or_rotate(f, len);

	if (r == 0 && f->torn)
		r = write_and_note_torn(f, "\n", 1); /* a torn line must not garble the next one */
	return r < 0 ? r : write_and_note_torn(f, line, len);
}

/* O_PATH is enough to open, rename and remove files in the folder. */
static int open_audit_folder(struct audit_file *f, const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/');
	char        folder[FOLDER_SIZE];
	struct stat st;
	int         n;

	if (path[0] != '/' || !slash[1])
		return err_set(e, ERR_BAD_SPEC, "%s: not the absolute path of a file", path);
	if (strlen(slash + 1) >= sizeof f->name || (size_t)(slash - path) >= sizeof folder)
		return err_set(e, ERR_BAD_SPEC, "%.80s...: the path is too long", path);
	strcpy(f->name, slash + 1);
	n = (int)(slash - path);
	snprintf(folder, sizeof folder, "%.*s", n ? n : 1, path);
	f->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (f->folder < 0 || fstat(f->folder, &st) < 0)
		return err_sys(e, "%s", folder);
	if (st.st_mode & S_IWOTH)
		return err_set(e, ERR_DENIED, "%s: all users may write to it; the audit needs a directory of its own",
			       folder);
	return 0;
}

static int open_folder_and_file(struct audit_file *f, const char *path, struct err *e)
{
	char name[NAME_SIZE];
	int  r;

	if (f->keep < 1 || f->keep > AUDIT_KEEP_MAX)
		return err_set(e, ERR_BAD_SPEC, "keep %u is outside 1..%d", f->keep, AUDIT_KEEP_MAX);
	if (open_audit_folder(f, path, e) < 0)
		return -1;
	r = open_newest_file(f);
	if (r == -EBADF || r == -ELOOP || r == -ENXIO)
		return err_set(e, ERR_DENIED, "%s: not a regular file with one name", path);
	if (r == -EACCES)
		return err_set(e, ERR_DENIED, "%s: uid %u may not write it; the folder must be that user's", path,
			       geteuid());
	if (r < 0) {
		errno = -r;
		return err_sys(e, "%s", path);
	}
	for (unsigned n = f->keep + 1; n <= AUDIT_KEEP_MAX; n++) /* predecessors of a time when keep was larger */
		unlinkat(f->folder, print_rotated_name(f, n, name), 0);
	return 0;
}

int audit_file_open(struct audit_file *ret, const char *path, uint64_t max_bytes, unsigned keep, struct err *e)
{
	struct audit_file f = { .folder = -1, .fd = -1, .max_bytes = max_bytes, .keep = keep };

	if (open_folder_and_file(&f, path, e) < 0) {
		audit_file_close(&f);
		return -1;
	}
	*ret = f;
	return 0;
}

void audit_file_close(struct audit_file *f)
{
	fd_closep(&f->fd);
	fd_closep(&f->folder);
}
