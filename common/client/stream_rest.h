/*
 * stream_rest.h - when a reader of output waits before it reads again.
 *
 * A program that writes single bytes would cost its reader as much CPU as itself. So after many reads that returned few
 * bytes, the reader waits for a moment after each further one, while the bytes collect in the pipe. A read that returns
 * many bytes reduces the count by what they are worth, so that a large write between many small ones does not reset it.
 */
#pragma once
#include <stddef.h>

enum { STREAM_LITTLE = 512, STREAM_MANY = 16, STREAM_REST_MS = 1 };

/* The new count after a read that returned n bytes. n == 0: end of file. n < 0: no bytes, because the program had read them back. */
static inline unsigned stream_count_little(unsigned little, long n)
{
	unsigned worth = n < 0 ? 0 : (unsigned)n / STREAM_LITTLE;

	if (n == 0)
		return 0;
	if (worth == 0)
		return little <= STREAM_MANY ? little + 1 : little;
	return little > worth ? little - worth : 0;
}

/* The last bytes of a stream: they say how the program ended. A ring; n counts all that was put into it. */
enum { STREAM_LAST = 256 };
struct stream_last {
	char   text[STREAM_LAST];
	size_t n;
};

static inline void stream_last_put(struct stream_last *end, const char *bytes, size_t len)
{
	size_t skip = len > STREAM_LAST ? len - STREAM_LAST : 0;

	end->n += skip;
	for (size_t i = skip; i < len; i++)
		end->text[end->n++ % STREAM_LAST] = bytes[i];
}

/* Whether the reader waits for STREAM_REST_MS before the next read. */
static inline int stream_rests(unsigned little)
{
	return little > STREAM_MANY;
}
