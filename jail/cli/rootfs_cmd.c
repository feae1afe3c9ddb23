/* rootfs_cmd.c - brig rootfs: brig-rootfs under the name that people look for */
#include "command.h"
#include "place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int rootfs_main(int argc, char **argv)
{
	struct places places;
	struct err    e;
	char          path[PLACE_MAX + 16];

	(void)argc;
	if (places_find(&places, &e) < 0) {
		fprintf(stderr, "brig rootfs: %s\n", e.text);
		return STATUS_FAILED;
	}
	snprintf(path, sizeof path, "%s/brig-rootfs", places.libexec);
	argv[0] = (char *)"brig-rootfs";
	execv(path, argv);
	fprintf(stderr, "brig rootfs: %s: %s\n", path, strerror(errno));
	return STATUS_FAILED;
}
