#define _GNU_SOURCE
#include "artifacts.h"

#include "fd.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NUMBERS_MAX = 10000 };

struct artifacts {
	int   dir;
	char *path;
};

struct artifacts *artifacts_create(const char *directory, struct err *e)
{
	struct artifacts *a = calloc(1, sizeof *a);

	if (!a) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	a->dir = mkdir(directory, 0700) < 0 && errno != EEXIST ? -1
							       : open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a->dir >= 0 && (a->path = realpath(directory, NULL)))
		return a;
	err_sys(e, "--artifacts %s", directory);
	artifacts_destroy(a);
	return NULL;
}

void artifacts_destroy(struct artifacts *a)
{
	if (!a)
		return;
	fd_closep(&a->dir);
	free(a->path);
	free(a);
}

/* A leading dot becomes '_': the file would be hidden, or the name would be "..". */
static void artifact_make_plain_name(const char *like, char name[ARTIFACT_NAME_MAX + 1])
{
	static const char may[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t            n     = strlen(like);

	if (n > ARTIFACT_NAME_MAX)
		like += n - ARTIFACT_NAME_MAX; /* the end is kept, as it has the file's type */
	for (n = 0; *like; like++, n++)
		name[n] = strchr(may, *like) && !(n == 0 && *like == '.') ? *like : '_';
	if (!n)
		name[n++] = '_';
	name[n] = 0;
}

/* "plot.png", "plot-2.png", ...: the first name that is free. Returns a descriptor, or -1 with errno. */
static int artifact_create_new_file(const struct artifacts *a, const char *name, char *file, size_t len)
{
	const char *dot = strrchr(name, '.');
	int         n   = dot && dot != name ? (int)(dot - name) : (int)strlen(name), fd = -1;

	errno = EEXIST;
	for (unsigned number = 1; fd < 0 && errno == EEXIST && number <= NUMBERS_MAX; number++) {
		if (number == 1)
			snprintf(file, len, "%s", name);
		else
			snprintf(file, len, "%.*s-%u%s", n, name, number, name + n);
		fd = openat(a->dir, file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	}
	return fd;
}

char *artifacts_save(struct artifacts *a, const char *like, const void *bytes, size_t len, struct err *e)
{
	char      name[ARTIFACT_NAME_MAX + 1], file[ARTIFACT_NAME_MAX + 20], *path = NULL;
	scoped_fd fd = -1;

	artifact_make_plain_name(like, name);
	fd = artifact_create_new_file(a, name, file, sizeof file);
	if (fd >= 0 && file_write_all(fd, bytes, len) == 0 && asprintf(&path, "%s/%s", a->path, file) > 0)
		return path;
	err_sys(e, "%s/%s", a->path, file);
	if (fd >= 0)
		unlinkat(a->dir, file, 0);
	return NULL;
}
