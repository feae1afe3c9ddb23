#define _GNU_SOURCE
#include "trust.h"

#include "fd.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool trust_stat_is_safe(const struct stat *st)
{
	return (st->st_uid == 0 || st->st_uid == geteuid()) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* A copy of *st in which the owner of the running program counts as root, and its group, if that may write to the program, as one that may not write: both can change the program itself. */
static struct stat program_owner_as_root(const struct stat *st)
{
	struct stat program, left = *st;
	int         before = errno;

	if (!trust_stat_is_safe(st) && stat("/proc/self/exe", &program) == 0) {
		if (left.st_uid == program.st_uid)
			left.st_uid = 0;
		if (program.st_mode & S_IWGRP && left.st_gid == program.st_gid)
			left.st_mode &= ~(mode_t)S_IWGRP;
	}
	errno = before;
	return left;
}

int trust_check(const struct stat *st, const char *path, struct err *e)
{
	const struct stat left = program_owner_as_root(st);

	if (trust_stat_is_safe(&left))
		return 0;
	if (left.st_mode & (S_IWGRP | S_IWOTH) && (left.st_uid == 0 || left.st_uid == geteuid()))
		return err_set(e, ERR_DENIED, "%s: %s may write to it; type: chmod go-w %s", path, left.st_mode & S_IWOTH ? "all users" : "its group", path);
	return err_set(e, ERR_DENIED, "%s: belongs to uid %u; it must be %s", path, st->st_uid, geteuid() ? "yours or root's" : "root's");
}

int trust_check_folder_of(const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/');
	char        folder[PATH_MAX];
	struct stat st;

	if (slash && slash - path >= (ptrdiff_t)sizeof folder)
		return err_set(e, ERR_BAD_SPEC, "%.60s...: path too long", path);
	snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + (slash == path) : 1, slash ? path : ".");
	if (stat(folder, &st) < 0)
		return err_sys(e, "%s", folder);
	if (st.st_mode & S_ISVTX)
		st.st_mode &= ~(mode_t)(S_IWGRP | S_IWOTH);
	return trust_check(&st, folder, e);
}

/* Its group may read it: services share a file of root with mode 0640. */
int trust_read_secret(const char *path, size_t max, struct bytes *ret, struct err *e)
{
	scoped_fd   fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_DENIED, "%s: not a regular file", path);
	if (st.st_mode & S_IROTH)
		return err_set(e, ERR_DENIED, "%s: others may read it; type: chmod 600 %s", path, path);
	if (trust_check(&st, path, e) < 0 || trust_check_folder_of(path, e) < 0)
		return -1;
	return file_read_fd(fd, path, max, ret, e);
}

int trust_read(const char *path, size_t max, struct bytes *ret, struct err *e)
{
	scoped_fd   fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* open() of a FIFO would wait for a writer */
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_BAD_SPEC, "%s: not a regular file of root or of its reader", path);
	if (trust_check(&st, path, e) < 0 || trust_check_folder_of(path, e) < 0)
		return -1;
	return file_read_fd(fd, path, max, ret, e);
}
