/* supervisor.c - the linker puts these around two calls of a supervisor that makes a zygote: --wrap in coverage.cmake */
#define _GNU_SOURCE
#include "zygote.h"
#include "zygote_image.h"

#include <fcntl.h>
#include <unistd.h>

static int zygote_file = -1; /* of the process that becomes one */

int __real_zygote_image_extension(uint32_t *len, struct err *e);
int __wrap_zygote_image_extension(uint32_t *len, struct err *e);
int __real_execve(const char *path, char *const argv[], char *const envp[]);
int __wrap_execve(const char *path, char *const argv[], char *const envp[]);

/* The last moment at which it sees the host's files. */
int __wrap_zygote_image_extension(uint32_t *len, struct err *e)
{
	zygote_file = open(COVERAGE_ZYGOTE_FILE, O_RDWR | O_CLOEXEC);
	return __real_zygote_image_extension(len, e);
}

int __wrap_execve(const char *path, char *const argv[], char *const envp[])
{
	if (zygote_file >= 0)
		dup2(zygote_file, COVERAGE_ZYGOTE_FD);
	return __real_execve(path, argv, envp);
}
