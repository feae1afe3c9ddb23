/* other_cmd.c - brig rootfs, brig doctor and brig metrics: commands that are separate programs */
#include "command.h"
#include "place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Executes the program that is in brig's own directory, as for brigd, or else the installed one. */
static int become(const char *name, const char *installed, char **argv)
{
	char  path[PLACE_MAX + 32];
	char *slash = place_of_program(path) ? strrchr(path, '/') : NULL;

	if (slash) {
		snprintf(slash, sizeof path - (size_t)(slash - path), "/%s", name);
		execv(path, argv);
	}
	execv(installed, argv);
	fprintf(stderr, "brig %s: %s: %s\n", name + sizeof "brig-" - 1, installed, strerror(errno));
	return STATUS_FAILED;
}

int rootfs_main(int argc, char **argv)
{
	(void)argc;
	argv[0] = (char *)"brig-rootfs";
	return become(argv[0], BRIG_BINDIR "/brig-rootfs", argv);
}

int metrics_main(int argc, char **argv)
{
	(void)argc;
	argv[0] = (char *)"brig-metrics";
	return become(argv[0], BRIG_LIBEXECDIR "/brig-metrics", argv);
}

int doctor_command(int argc, char **argv)
{
	(void)argc;
	argv[0] = (char *)"brig-doctor";
	return become(argv[0], BRIG_LIBEXECDIR "/brig-doctor", argv);
}
