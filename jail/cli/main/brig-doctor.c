/* brig-doctor.c - main() of brig doctor, a program of its own because it looks up accounts, which the static brig cannot */
#include "command.h"
#include "doctor.h"
#include "file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	int status;

	if (argc < 1)
		return STATUS_USAGE;
	if (file_open_standard_fds() < 0) {
		fprintf(stderr, "brig: descriptors 0 to 2 cannot be filled with /dev/null: %s\n", strerror(errno));
		return STATUS_DENIED;
	}
	argv[0] = (char *)"doctor";
	status  = doctor_main(argc, argv);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fprintf(stderr, "brig: write to standard output: %s\n", strerror(errno));
	return STATUS_FAILED;
}
