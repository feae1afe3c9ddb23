/*
 * stream_rest.h - when a reader of output waits before it reads again.
 *
 * A program that writes byte by byte would cost its reader as much CPU as itself. So after many reads that returned few
 * bytes, the reader waits for a moment after each further one, while the bytes collect in the pipe. A read that returns
 * many bytes reduces the count by what they are worth, so that a large write between many small ones does not reset it.
 */
#pragma once

enum { STREAM_LITTLE = 512, STREAM_MANY = 16, STREAM_REST_MS = 1 };

/* The count behind a read that brought n bytes; 0: the end; n < 0: there was nothing, because the program had taken it back. */
static inline unsigned stream_count_little(unsigned little, long n)
{
	unsigned worth = n < 0 ? 0 : (unsigned)n / STREAM_LITTLE;

	if (n == 0)
		return 0;
	if (worth == 0)
		return little <= STREAM_MANY ? little + 1 : little;
	return little > worth ? little - worth : 0;
}

/* Before the next read, for STREAM_REST_MS. */
static inline int stream_rests(unsigned little)
{
	return little > STREAM_MANY;
}
