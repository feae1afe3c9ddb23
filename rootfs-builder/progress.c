#define _GNU_SOURCE
#include "progress.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define TO_LINE_END "\033[K"

/* The thread: prints each second. A stage that is over sooner prints nothing. */
static void *progress_thread(void *progress)
{
	const struct progress *p   = progress;
	struct pollfd          end = { .fd = p->end[0], .events = POLLIN };

	for (unsigned seconds = 1; poll(&end, 1, 1000) == 0; seconds++)
		fprintf(stderr, "\r  %-10s %5u s   stage %u of %u" TO_LINE_END, p->stage, seconds, p->number, p->of);
	return NULL;
}

/* If the thread cannot be started, nothing is shown. */
void progress_start(struct progress *p, const char *stage, unsigned number, unsigned of)
{
	*p = (struct progress){ .stage = stage, .number = number, .of = of };
	if (!isatty(STDERR_FILENO) || pipe2(p->end, O_CLOEXEC) < 0)
		return;
	p->is_on = pthread_create(&p->clock, NULL, progress_thread, p) == 0;
	if (!p->is_on) {
		close(p->end[0]);
		close(p->end[1]);
	}
}

void progress_stop(struct progress *p)
{
	if (!p->is_on)
		return;
	close(p->end[1]);
	pthread_join(p->clock, NULL);
	close(p->end[0]);
	fputs("\r" TO_LINE_END, stderr);
}
