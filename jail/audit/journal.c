#define _GNU_SOURCE
#include "journal.h"

#include "fd.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define JOURNAL_NAME         "brigd"
#define JOURNAL_LAST_WAIT_MS 1000

static int connect_to(struct sockaddr_un *at, const char *path)
{
	scoped_fd fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || strlen(path) >= sizeof at->sun_path)
		return -1;
	strcpy(at->sun_path, path);
	return connect(fd, (struct sockaddr *)at, sizeof *at) < 0 ? -1 : fd_take(&fd);
}

void journal_open(struct journal *ret, const char *path, int text_fd)
{
	*ret = (struct journal){ .at = { .sun_family = AF_UNIX }, .fd = -1, .text_fd = text_fd };
	if (path)
		ret->fd = connect_to(&ret->at, path);
}

static void put(struct journal_message *m, const void *bytes, size_t len)
{
	if (len > sizeof m->bytes - m->len)
		m->full = true;
	if (m->full)
		return;
	memcpy(m->bytes + m->len, bytes, len);
	m->len += len;
}

/* NAME, newline, length, value, newline: what the value holds does not matter. */
void journal_add(struct journal_message *m, const char *field, const void *value, size_t len)
{
	uint64_t size = htole64(len);

	put(m, field, strlen(field));
	put(m, "\n", 1);
	put(m, &size, sizeof size);
	put(m, value, len);
	put(m, "\n", 1);
}

void journal_begin(struct journal_message *m, enum journal_priority priority, const char *words)
{
	char digit = (char)('0' + priority);

	m->len  = 0;
	m->full = false;
	journal_add(m, "PRIORITY", &digit, 1);
	journal_add(m, "SYSLOG_IDENTIFIER", JOURNAL_NAME, strlen(JOURNAL_NAME));
	journal_add(m, "MESSAGE", words, strlen(words));
	m->words_len = strlen(words) + 1; /* with the newline behind it */
	m->words     = m->full ? 0 : m->len - m->words_len;
}

/* Never waits: a pipe that can be written to takes a whole page, and a terminal or pipe that is full gets nothing. */
static bool write_if_ready(int fd, const char *words, size_t len)
{
	struct pollfd p = { fd, POLLOUT, 0 };

	return fd >= 0 && poll(&p, 1, 0) == 1 && p.revents == POLLOUT && write(fd, words, len) == (ssize_t)len;
}

/* After the first ECONNREFUSED the kernel has forgotten the connection, and every send() fails with ENOTCONN. */
static bool send_datagram(const struct journal *j, const void *bytes, size_t len)
{
	ssize_t n = send(j->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && (errno == ECONNREFUSED || errno == ENOTCONN || errno == EPIPE))
		n = sendto(j->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&j->at, sizeof j->at);
	return n == (ssize_t)len;
}

static bool is_taken(const struct journal *j, const struct journal_message *m)
{
	if (m->full)
		return false;
	return j->fd >= 0 ? send_datagram(j, m->bytes, m->len) : write_if_ready(j->text_fd, m->bytes + m->words, m->words_len);
}

/* Sends the number of lost messages. Any user can fill the journal's socket for a while: readers of the audit must see that lines are missing, and where. */
static void send_lost(struct journal *j)
{
	struct journal_message m;
	char                   words[80];

	snprintf(words, sizeof words, "audit: journal: written again, without %llu lines", (unsigned long long)j->losing);
	journal_begin(&m, JOURNAL_NOTICE, words);
	if (is_taken(j, &m))
		j->losing = 0;
}

void journal_send(struct journal *j, const struct journal_message *m)
{
	if (!journal_listens(j))
		return;
	if (j->losing)
		send_lost(j);
	if (is_taken(j, m))
		return;
	j->lost++;
	j->losing++;
}

/*
 * brigd ends. A process that fills the socket may delay that by so much and no more. A socket without a peer is always writable, so it is
 * connected again: the journal may have been started anew.
 */
static void await_room(const struct journal *j)
{
	struct pollfd p = { j->fd >= 0 ? j->fd : j->text_fd, POLLOUT, 0 };

	if (j->fd < 0 || connect(j->fd, (const struct sockaddr *)&j->at, sizeof j->at) == 0)
		poll(&p, 1, JOURNAL_LAST_WAIT_MS);
}

void journal_close(struct journal *j)
{
	if (j->losing) {
		await_room(j);
		send_lost(j);
	}
	fd_closep(&j->fd);
	j->text_fd = -1;
}

void journal_log(struct journal *j, enum journal_priority priority, const char *fmt, ...)
{
	struct journal_message m;
	char                   words[1024];
	va_list                ap;

	va_start(ap, fmt);
	vsnprintf(words, sizeof words, fmt, ap);
	va_end(ap);
	journal_begin(&m, priority, words);
	journal_send(j, &m);
}
