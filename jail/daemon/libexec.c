#define _GNU_SOURCE
#include "libexec.h"

#include <fcntl.h>
#include <stdio.h>

int libexec_open(const struct places *places, const char *name, struct err *e)
{
	char path[PLACE_MAX + 16], installed[PLACE_MAX];
	int  fd;

	snprintf(path, sizeof path, "%s/%s", places->libexec, name);
	snprintf(installed, sizeof installed, BRIG_LIBEXECDIR "/%s", name);
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		fd = open(installed, O_PATH | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "%s", path) : fd;
}
