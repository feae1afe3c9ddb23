/*
 * replay.c - every file of the folders that are named, through a target, without libFuzzer.
 *
 * The name is printed before its bytes are tried: the last one of a program
 * that died is the one that killed it.
 */
#define _GNU_SOURCE
#include "file.h"
#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>

enum { FILE_MAX = 4 * MIB };

static int is_file(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int replay_file(const char *folder, const char *name)
{
	scoped_bytes file = { 0 };
	struct err   e    = { 0 };
	char         path[4096];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	fprintf(stderr, "%s\n", path);
	if (file_read(AT_FDCWD, path, FILE_MAX, &file, &e) < 0) {
		fprintf(stderr, "%s\n", e.text);
		return -1;
	}
	uint8_t *exact = malloc(file.len + !file.len); /* no NUL behind it: a step too far is seen */
	memcpy(exact, file.data, file.len);
	LLVMFuzzerTestOneInput(exact, file.len);
	free(exact);
	return 0;
}

static int replay_folder(const char *folder)
{
	struct dirent **entry = NULL;
	int             n     = scandir(folder, &entry, is_file, alphasort), failed = n < 0;

	if (n < 0)
		perror(folder);
	for (int i = 0; i < n; i++) {
		failed |= replay_file(folder, entry[i]->d_name) < 0;
		free(entry[i]);
	}
	free(entry);
	printf("%s: %d files\n", folder, n);
	return failed ? -1 : 0;
}

int main(int argc, char **argv)
{
	int failed = argc < 2;

	for (int i = 1; i < argc; i++)
		failed |= replay_folder(argv[i]) < 0;
	return failed;
}
