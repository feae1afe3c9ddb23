/* other_cmd.c - brig rootfs, brig doctor, brig metrics and brigd: commands that are separate programs */
#include "command.h"
#include "exec_env.h"
#include "paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Executes the program that is in brig's own directory, as for brigd, or else the installed one. */
static int exec_other_program(const char *name, const char *installed, char **argv)
{
	char  path[PATH_SIZE + 32];
	char *slash = place_of_program(path) ? strrchr(path, '/') : NULL, **env = exec_env();

	if (env && slash) {
		snprintf(slash, sizeof path - (size_t)(slash - path), "/%s", name);
		execve(path, argv, env);
	}
	if (env)
		execve(installed, argv, env);
	fprintf(stderr, "%s: %s: %s\n", name, installed, strerror(errno));
	free(env);
	return STATUS_FAILED;
}

int brigd_main(int argc, char **argv)
{
	(void)argc;
	return exec_other_program("brigd", BRIG_SBINDIR "/brigd", argv);
}

int rootfs_main(int argc, char **argv)
{
	(void)argc;
	argv[0] = (char *)"brig-rootfs";
	return exec_other_program(argv[0], BRIG_BINDIR "/brig-rootfs", argv);
}

int metrics_main(int argc, char **argv)
{
	(void)argc;
	argv[0] = (char *)"brig-metrics";
	return exec_other_program(argv[0], BRIG_LIBEXECDIR "/brig-metrics", argv);
}

int doctor_command(int argc, char **argv)
{
	(void)argc;
	argv[0] = (char *)"brig-doctor";
	return exec_other_program(argv[0], BRIG_LIBEXECDIR "/brig-doctor", argv);
}
