#define _GNU_SOURCE
#include "journal.h"

#include "fd.h"

#include <endian.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define JOURNAL_NAME "brigd"

static int connect_to(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	scoped_fd          fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || strlen(path) >= sizeof at.sun_path)
		return -1;
	strcpy(at.sun_path, path);
	return connect(fd, (struct sockaddr *)&at, sizeof at) < 0 ? -1 : fd_take(&fd);
}

void journal_open(struct journal *ret, const char *path, int text_fd)
{
	*ret = (struct journal){ .fd = path ? connect_to(path) : -1, .text_fd = text_fd };
}

void journal_close(struct journal *j)
{
	fd_closep(&j->fd);
	j->text_fd = -1;
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

void journal_send(struct journal *j, const struct journal_message *m)
{
	bool taken = false;

	if (!journal_listens(j))
		return;
	if (!m->full)
		taken = j->fd >= 0 ? send(j->fd, m->bytes, m->len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)m->len
				   : write_if_ready(j->text_fd, m->bytes + m->words, m->words_len);
	j->lost += !taken;
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
