/* clock.h - milliseconds, for deadlines and for the record */
#pragma once
#include <time.h>

static inline double clock_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}
