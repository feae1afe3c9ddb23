#include "doctor.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "doctor") == 0)
		return doctor_main(argc - 1, argv + 1);
	fputs("usage: brig doctor [--json]\n", stderr);
	return 2;
}
