/*
 * pipes.h - the pipes between a program and its client, and the order in which their ends travel
 *
 * stdout and stderr always; then stdin, then result, if the run asked for them. PID 1 of the cell makes all four. The
 * server makes the socket of a run with tools, and the program's end of it travels with the order (run_spec_file.h).
 */
#pragma once
#include "fd.h"

enum { PIPES_MAX = 4 };

static inline size_t pipes_count(bool with_stdin, bool with_result)
{
	return (size_t)2 + with_stdin + with_result;
}

/* Moves the ends that were asked for from all to to; the others stay in all. Returns how many were moved. */
static inline size_t pipes_take_client_ends(int to[PIPES_MAX], int all[PIPES_MAX], bool with_stdin, bool with_result)
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
