#define _GNU_SOURCE
#include "credentials.h"

#include "fd.h"
#include "trust.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_credentials_folder(void)
{
	const char *folder = getenv("CREDENTIALS_DIRECTORY");

	errno = ENOENT;
	return folder && *folder == '/' ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

static int open_trusted_file(int folder, const char *name)
{
	scoped_fd   fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	errno = S_ISREG(st.st_mode) ? EPERM : EINVAL;
	return S_ISREG(st.st_mode) && trust_stat_is_safe(&st) ? fd_take(&fd) : -1;
}

void credentials_open(struct credentials *ret)
{
	int            folder = open_credentials_folder(), fd;
	DIR           *dir    = folder < 0 ? NULL : fdopendir(folder);
	struct dirent *entry;

	ret->n = 0;
	while (dir && ret->n < CREDENTIALS_MAX && (entry = readdir(dir))) {
		fd = strlen(entry->d_name) <= CREDENTIAL_NAME_MAX ? open_trusted_file(folder, entry->d_name) : -1;
		if (fd < 0)
			continue;
		strcpy(ret->item[ret->n].name, entry->d_name);
		ret->item[ret->n++].fd = fd;
	}
	if (dir)
		closedir(dir);
	else
		fd_closep(&folder);
}

/* A duplicate of a held descriptor. It shares the file offset, which an earlier reading has moved. */
static int duplicate_held(const struct credentials *held, const char *name)
{
	for (size_t i = 0; i < held->n; i++)
		if (strcmp(held->item[i].name, name) == 0)
			return lseek(held->item[i].fd, 0, SEEK_SET) < 0 ? -1 : fcntl(held->item[i].fd, F_DUPFD_CLOEXEC, 3);
	errno = ENOENT;
	return -1;
}

int credential_open(const struct credentials *held, const char *name, struct err *e)
{
	scoped_fd folder = held ? -1 : open_credentials_folder();
	int       fd     = held ? duplicate_held(held, name) : folder < 0 ? -1 : open_trusted_file(folder, name);

	if (fd >= 0)
		return fd;
	if (errno != ENOENT)
		return err_sys(e, "credential %s", name);
	return err_set(e, ERR_MISSING, "credential %s: systemd gave none to brigd: LoadCredential=%s:FILE in brigd.service does", name, name);
}
