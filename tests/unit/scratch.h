/* scratch.h - a folder of a test's own, gone when it ends */
#pragma once
#include "file.h"
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static inline void must(bool ok, const char *what)
{
	if (!ok) {
		printf("Bail out! %s: %s\n", what, strerror(errno));
		exit(EXIT_FAILURE);
	}
}

/* For as many as a test needs; 256 bytes of room. */
static inline const char *scratch_make(char *folder)
{
	snprintf(folder, 256, "%s/brig-unit-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	must(mkdtemp(folder) != NULL, "mkdtemp");
	return folder;
}

static inline void scratch_empty(const char *folder)
{
	DIR           *d = opendir(folder);
	struct dirent *entry;

	while (d && (entry = readdir(d)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && unlinkat(dirfd(d), entry->d_name, 0) < 0)
			unlinkat(dirfd(d), entry->d_name, AT_REMOVEDIR);
	if (d)
		closedir(d);
}

static inline void scratch_remove(const char *folder)
{
	scratch_empty(folder);
	rmdir(folder);
}

static inline const char *scratch_path(const char *folder, const char *name)
{
	static char path[4][512];
	static int  n;

	n = (n + 1) % 4;
	snprintf(path[n], sizeof path[n], "%s/%s", folder, name);
	return path[n];
}

/* What a file holds; "(none)" when there is none. The last four stay. */
static inline const char *scratch_read(const char *folder, const char *name)
{
	static char  text[4][128 * 1024];
	static int   n;
	scoped_bytes file = { 0 };
	struct err   e;

	n = (n + 1) % 4;
	snprintf(text[n], sizeof text[n], "%s", file_read(AT_FDCWD, scratch_path(folder, name), sizeof text[n] - 1, &file, &e) < 0 ? "(none)" : file.data);
	return text[n];
}

static inline void scratch_write(const char *folder, const char *name, const char *text)
{
	FILE *out = fopen(scratch_path(folder, name), "we");

	must(out && fputs(text, out) >= 0 && fclose(out) == 0, name);
}
