/* What comes out of a jail: so much is kept, of the rest the end, all of it is counted, a flood is told. */
#define _GNU_SOURCE
#include "stream.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

/* Writes pieces of this size and reads after each; what is kept must be the beginning, and the tail the end of the rest. */
static bool holds(size_t total, size_t piece, size_t keep, size_t tail_max)
{
	char          tail[256], *all = malloc(total + 1);
	int           ends[2];
	struct stream s;
	bool          ok;
	size_t        beyond = total > keep ? total - keep : 0, kept_tail = beyond < tail_max ? beyond : tail_max;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	s = (struct stream){ .fd = ends[0], .to = -1, .keep = keep, .tail = tail_max ? tail : NULL, .tail_max = tail_max };
	for (size_t i = 0; i < total; i++)
		all[i] = (char)('a' + i % 23);
	for (size_t at = 0; at < total;) {
		size_t n = total - at < piece ? total - at : piece;

		if (write(ends[1], all + at, n) != (ssize_t)n)
			break;
		at += n;
		(void)!stream_read(&s);
	}
	close(ends[1]);
	(void)!stream_read(&s);
	ok = s.seen == total && s.len == (total < keep ? total : keep) && (!s.len || memcmp(s.data, all, s.len) == 0) && s.fd == -1 && s.ended;
	ok &= stream_is_truncated(&s) == (total > keep);
	if (tail_max)
		ok &= s.tail_len == kept_tail && memcmp(tail, all + total - kept_tail, kept_tail) == 0;
	stream_done(&s);
	free(all);
	return ok;
}

static void test_sizes(void)
{
	static const size_t totals[] = { 0, 1, 63, 64, 65, 100, 163, 164, 165, 400, 3000 }, pieces[] = { 1, 7, 64, 99, 1000, 4000 }, tails[] = { 0, 1, 50, 100, 256 };
	bool                ok = true;

	for (size_t t = 0; t < ARRAY_LEN(totals); t++)
		for (size_t p = 0; p < ARRAY_LEN(pieces); p++)
			for (size_t k = 0; k < ARRAY_LEN(tails); k++)
				ok &= holds(totals[t], pieces[p], 64, tails[k]);
	tap_ok(ok, "whatever the sizes: the beginning is kept, the tail is the end of what was not, and all is counted");
}

static void test_flood(void)
{
	int           ends[2];
	char          bytes[100] = { 0 };
	struct stream s;
	int           reads = 0;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return;
	s = (struct stream){ .fd = ends[0], .to = -1, .keep = 100 };
	while (reads++ < 20 && write(ends[1], bytes, sizeof bytes) > 0 && stream_read(&s) == STREAM_GOES_ON)
		;
	tap_ok(reads == 9 && s.seen == 900 && s.len == 100, "more than eight times as much as is kept is a flood");
	close(ends[1]);
	stream_done(&s);
}

static void test_lent(void)
{
	int           ends[2];
	struct stream s;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return;
	s = (struct stream){ .fd = ends[0], .to = -1, .keep = 100, .lent = true };
	tap_ok(stream_read(&s) == STREAM_GOES_ON && !s.ended, "nothing to read yet is no end");
	close(ends[1]);
	tap_ok(stream_read(&s) == STREAM_GOES_ON && s.ended && s.fd == ends[0], "a descriptor that was lent is left open at the end");
	stream_done(&s);
}

/* The jail can clear O_NONBLOCK of a session's pipe, and read what was there. */
static void test_blocking(void)
{
	int           ends[2];
	char          byte;
	struct iovec  room = { &byte, 1 };
	struct stream s;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	s = (struct stream){ .fd = ends[0], .to = -1, .keep = 100 };
	if (preadv2(ends[0], &room, 1, -1, RWF_NOWAIT) < 0 && errno == EOPNOTSUPP) {
		printf("# before Linux 6.4 a pipe that blocks blocks\n");
	} else {
		alarm(10);
		tap_ok(stream_read(&s) == STREAM_GOES_ON && !s.ended, "a read waits for nothing, although the pipe blocks");
		alarm(0);
	}
	close(ends[1]);
	stream_done(&s);
}

/* How many of these reads are followed by a rest. */
static unsigned rests(const long *reads, size_t n, size_t times)
{
	struct stream s    = { .fd = -1 };
	unsigned      many = 0;

	for (size_t i = 0; i < n * times; i++) {
		s.little = stream_count_little(s.little, reads[i % n]);
		many += (unsigned)stream_rests(s.little);
	}
	return many;
}

static void test_rest(void)
{
	static const long bytes[] = { 1 }, taken_back[] = { -1 }, mixed[] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 512 }, much[] = { 512 },
			  lines[] = { 80, 4000 };

	tap_ok(rests(bytes, 1, 16) == 0 && rests(bytes, 1, 1000) == 1000 - 16, "a few small reads are at once, then each is followed by a rest");
	tap_ok(rests(taken_back, 1, 1000) == 1000 - 16, "so is one that finds nothing, because the program has taken it back");
	tap_ok(rests(mixed, ARRAY_LEN(mixed), 100) > 1400, "a larger one between many takes back one of them");
	tap_ok(rests(much, 1, 1000) == 0 && rests(lines, 2, 1000) == 0, "what is worth a read has no rest");
}

int main(void)
{
	test_sizes();
	test_rest();
	test_flood();
	test_lent();
	test_blocking();
	return tap_done();
}
