/* session_memory.c - closes the session that was idle for longest while the host has little memory left */
#include "clock.h"
#include "fd.h"
#include "served_run.h"
#include "session.h"
#include "text.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 1000 }; /* a session that was closed has given its memory back by then */

/* Bytes, as the kernel estimates them, with caches that it can drop. UINT64_MAX: not known. */
static uint64_t read_available_memory(void)
{
	char        text[512];
	scoped_fd   fd  = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	ssize_t     n   = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	const char *row;

	text[n < 0 ? 0 : n] = 0;
	row                 = strstr(text, "MemAvailable:");
	return row ? strtoull(row + strlen("MemAvailable:"), NULL, 10) * KIB : UINT64_MAX;
}

/* Sessions are closed one after the other: NULL also while one is closing. */
static struct session *find_longest_idle_session(const struct server *d)
{
	struct session *s, *longest = NULL;

	TAILQ_FOREACH(s, &d->sessions, link) {
		if (s->state == SESSION_CLOSES)
			return NULL;
		if (s->state == SESSION_OPEN && !s->calls_len && (!longest || s->used_ms < longest->used_ms))
			longest = s;
	}
	return longest;
}

void session_close_idle_if_memory_short(void *server)
{
	struct server  *d     = server;
	uint64_t        spare = d->config.spare_memory_bytes;
	struct session *s     = spare && read_available_memory() < spare ? find_longest_idle_session(d) : NULL;
	char            size[32], why[SESSION_WHY_MAX];

	if (s) {
		snprintf(why, sizeof why, "the host had less than %s of memory available, and it was idle for longest",
			 text_from_size(spare, size, sizeof size));
		session_request_close(s, why);
	}
	if (!TAILQ_EMPTY(&d->sessions))
		loop_timer_set(&d->loop, &d->memory_timer, LOOK_MS);
}

void session_start_memory_timer(struct server *d)
{
	if (!d->memory_timer.set)
		loop_timer_set(&d->loop, &d->memory_timer, LOOK_MS);
}
