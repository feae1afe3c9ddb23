#include "stderr_line.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void stderr_print_line(const char *fmt, ...)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
	char          line[1000];
	va_list       ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (poll(&p, 1, 0) > 0 && p.revents & POLLOUT)
		(void)!write(STDERR_FILENO, line, strlen(line)); /* shorter than PIPE_BUF: all of it, at once */
}
