/* goes_wrong.c - a program that closes all its descriptors, and then reads behind an object (heap), or adds more than an int holds (sum) */
#define _GNU_SOURCE
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	volatile int sum    = INT_MAX;
	char *volatile heap = malloc((size_t)argc);

	close_range(0, ~0u, 0);
	if (argc == 2 && strcmp(argv[1], "heap") == 0)
		return heap[argc];
	sum += argc;
	return sum < 0;
}
