/* program.c - a program counts from before its main() on: later it may have no way to the file any more */
#include "count.h"

#include <fcntl.h>

__attribute__((constructor(101))) static void count(void)
{
	int fd = open(COVERAGE_FILE, O_RDWR | O_CLOEXEC); /* made by tools/coverage.py for everybody to write to */

	if (fd >= 0)
		count_in(fd);
}
