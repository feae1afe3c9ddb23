/*
 * pipes.h - the pipes between a program and its client, and the order in which their ends travel
 *
 * stdout and stderr always; then stdin, then result, if the run asked for them. All are made in the cell. The socket of a run with tools is
 * made by the door, and its program's end travels with the order (order_file.h).
 */
#pragma once
#include "fd.h"

enum { PIPES_MAX = 4 };

static inline size_t pipes_count(bool with_stdin, bool with_result)
{
	return (size_t)2 + with_stdin + with_result;
}

/* Of the ends of all four, those that were asked for; the others stay where they are. How many. */
static inline size_t pipes_take(int to[PIPES_MAX], int all[PIPES_MAX], bool with_stdin, bool with_result)
{
	size_t n = 0;

	to[n++] = fd_take(&all[0]);
	to[n++] = fd_take(&all[1]);
	if (with_stdin)
		to[n++] = fd_take(&all[2]);
	if (with_result)
		to[n++] = fd_take(&all[3]);
	return n;
}
