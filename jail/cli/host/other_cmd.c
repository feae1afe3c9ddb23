/* other_cmd.c - brig rootfs, brig doctor, brig metrics and brigd: commands that are separate programs */
#include "command.h"
#include "exec_env.h"
#include "paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *command, *program, *installed;
} programs[] = {
	{ "brigd", "brigd", BRIG_SBINDIR "/brigd" },
	{ "rootfs", "brig-rootfs", BRIG_BINDIR "/brig-rootfs" },
	{ "metrics", "brig-metrics", BRIG_LIBEXECDIR "/brig-metrics" },
	{ "doctor", "brig-doctor", BRIG_LIBEXECDIR "/brig-doctor" },
};

/* The program is in brig's own directory, as brigd may be, or else the installed one is executed. */
int exec_program_of_command(int argc, char **argv)
{
	char        path[PATH_SIZE + 32];
	char       *slash = find_path_of_program(path) ? strrchr(path, '/') : NULL, **env = exec_env_filtered();
	const char *installed;
	size_t      i = 0;

	(void)argc;
	while (strcmp(programs[i].command, argv[0]) != 0)
		i++;
	argv[0]   = (char *)programs[i].program;
	installed = programs[i].installed;
	if (env && slash) {
		snprintf(slash, sizeof path - (size_t)(slash - path), "/%s", argv[0]);
		execve(path, argv, env);
	}
	if (env)
		execve(installed, argv, env);
	fprintf(stderr, "%s: %s: %s\n", argv[0], installed, strerror(errno));
	free(env);
	return STATUS_FAILED;
}
