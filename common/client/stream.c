#define _GNU_SOURCE
#include "stream.h"

#include "fd.h"
#include "file.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum { FLOOD_FACTOR = 8, CHUNK = 64 * 1024 };

/* When memory is short, the bytes are dropped; seen still counts them. */
static void stream_append(struct stream *s, const char *bytes, size_t n)
{
	if (s->len + n > s->room) {
		size_t room = s->room ? s->room * 2 : CHUNK;
		char  *more;

		while (room < s->len + n)
			room *= 2;
		more = realloc(s->data, room);
		if (!more) {
			s->keep = s->len; /* no hole in what is kept, and stream_is_truncated() */
			return;
		}
		s->data = more;
		s->room = room;
	}
	memcpy(s->data + s->len, bytes, n);
	s->len += n;
}

static void stream_append_or_write(struct stream *s, const char *bytes, size_t n)
{
	if (s->to < 0) {
		stream_append(s, bytes, n);
	} else if (!s->broken) {
		stream_last_put(&s->end, bytes, n);
		if (file_write_all(s->to, bytes, n) < 0)
			s->broken = errno;
	}
}

/* Keeps the last tail_max of all bytes passed to it. */
static void stream_keep_tail(struct stream *s, const char *bytes, size_t n)
{
	size_t stay;

	if (n > s->tail_max) {
		bytes += n - s->tail_max;
		n = s->tail_max;
	}
	stay = s->tail_len < s->tail_max - n ? s->tail_len : s->tail_max - n;
	memmove(s->tail, s->tail + s->tail_len - stay, stay);
	memcpy(s->tail + stay, bytes, n);
	s->tail_len = stay + n;
}

ssize_t stream_read_now(int fd, void *bytes, size_t len)
{
	const struct iovec room = { bytes, len };
	ssize_t            n    = preadv2(fd, &room, 1, -1, RWF_NOWAIT);

	return n < 0 && (errno == EOPNOTSUPP || errno == ENOSYS) ? read(fd, bytes, len) : n;
}

enum stream_answer stream_read(struct stream *s)
{
	char     chunk[CHUNK];
	ssize_t  n    = stream_read_now(s->fd, chunk, sizeof chunk);
	uint64_t left = s->keep > s->seen ? s->keep - s->seen : 0;
	bool     was  = s->broken != 0;

	s->little = stream_count_little(s->little, n);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return STREAM_GOES_ON;
	if (n <= 0) {
		s->ended = true;
		if (!s->lent)
			fd_closep(&s->fd);
		if (n == 0)
			return STREAM_GOES_ON;
		s->broken = errno;
		s->unread = true;
		return STREAM_BROKEN;
	}
	if (left)
		stream_append_or_write(s, chunk, (uint64_t)n < left ? (size_t)n : (size_t)left);
	if (s->tail && (uint64_t)n > left)
		stream_keep_tail(s, chunk + left, (size_t)n - (size_t)left);
	s->seen += (uint64_t)n;
	if (s->broken && !was)
		return STREAM_BROKEN;
	return s->seen > FLOOD_FACTOR * s->keep ? STREAM_FLOOD : STREAM_GOES_ON;
}

void stream_drain(struct stream *s)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };

	while (s->fd >= 0 && !s->ended && poll(&p, 1, 0) > 0)
		if (stream_read(s) != STREAM_GOES_ON)
			return;
}

void stream_done(struct stream *s)
{
	fd_closep(&s->fd);
	free(s->data);
	s->data = NULL;
}
