#define _GNU_SOURCE
#include "libexec.h"

#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

int libexec_open(const struct brig_paths *places, const char *name, struct err *e)
{
	char        path[PATH_SIZE + 16], installed[PATH_SIZE];
	struct stat st;
	scoped_fd   fd = -1;

	snprintf(path, sizeof path, "%s/%s", places->libexec, name);
	snprintf(installed, sizeof installed, BRIG_LIBEXECDIR "/%s", name);
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		fd = open(installed, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "%s", path);
	/* execveat() would fail too, but only when it is too late to refuse. */
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH))) {
		errno = EACCES;
		return err_sys(e, "%s: cannot be executed", path);
	}
	return fd_take(&fd);
}
