#define _GNU_SOURCE
#include "fd.h"

static void sort_fds(int *fds, size_t n)
{
	for (size_t i = 1; i < n; i++)
		for (size_t at = i; at > 0 && fds[at] < fds[at - 1]; at--) {
			int less = fds[at];

			fds[at]     = fds[at - 1];
			fds[at - 1] = less;
		}
}

int fd_close_all_but(int *keep, size_t n)
{
	int next = STDERR_FILENO + 1;

	sort_fds(keep, n);
	for (size_t i = 0; i < n; i++) {
		if (keep[i] < next)
			continue;
		if (keep[i] > next && close_range((unsigned)next, (unsigned)keep[i] - 1, 0) < 0)
			return -1;
		next = keep[i] + 1;
	}
	return close_range((unsigned)next, ~0u, 0);
}
