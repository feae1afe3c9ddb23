/*
 * pipes.h - the pipes between a program and its client, and the order in which their ends travel
 *
 * stdout and stderr always; then stdin, then result, for who asked for them. All are made in the cell.
 */
#pragma once
#include "defs.h"

enum { PIPES_MAX = 4 };

static inline size_t pipes_count(bool with_stdin, bool with_result)
{
	return (size_t)2 + with_stdin + with_result;
}
