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

void journal_open(struct journal *ret, const char *path, int text_fd)
{
	scoped_fd fd = path ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;

	*ret = (struct journal){ .at = { .sun_family = AF_UNIX }, .fd = -1, .text_fd = text_fd };
	if (fd < 0 || strlen(path) >= sizeof ret->at.sun_path)
		return;
	strcpy(ret->at.sun_path, path);
	if (connect(fd, (struct sockaddr *)&ret->at, sizeof ret->at) == 0)
		ret->fd = fd_take(&fd);
}

static void journal_message_append(struct journal_message *m, const void *bytes, size_t len)
{
	if (len > sizeof m->bytes - m->len)
		m->full = true;
	if (m->full)
		return;
	memcpy(m->bytes + m->len, bytes, len);
	m->len += len;
}

/* NAME, newline, length, value, newline: what the value holds does not matter. */
void journal_add_field(struct journal_message *m, const char *field, const void *value, size_t len)
{
	uint64_t size = htole64(len);

	journal_message_append(m, field, strlen(field));
	journal_message_append(m, "\n", 1);
	journal_message_append(m, &size, sizeof size);
	journal_message_append(m, value, len);
	journal_message_append(m, "\n", 1);
}

void journal_message_init(struct journal_message *m, enum journal_priority priority, const char *words)
{
	char digit = (char)('0' + priority);

	m->len  = 0;
	m->full = false;
	journal_add_field(m, "PRIORITY", &digit, 1);
	journal_add_field(m, "SYSLOG_IDENTIFIER", JOURNAL_NAME, strlen(JOURNAL_NAME));
	journal_add_field(m, "MESSAGE", words, strlen(words));
	m->words_len = strlen(words) + 1; /* with the newline behind it */
	m->words     = m->full ? 0 : m->len - m->words_len;
}

static bool journal_write_message(const struct journal *j, const struct journal_message *m)
{
	struct pollfd p = { j->text_fd, POLLOUT, 0 };
	ssize_t       n;

	if (m->full)
		return false;
	/* Never waits: a pipe that can be written to takes a whole page; what is full gets nothing. */
	if (j->fd < 0)
		return j->text_fd >= 0 && poll(&p, 1, 0) == 1 && p.revents == POLLOUT &&
		       write(j->text_fd, m->bytes + m->words, m->words_len) == (ssize_t)m->words_len;
	n = send(j->fd, m->bytes, m->len, MSG_DONTWAIT | MSG_NOSIGNAL);
	/*
	 * After the first ECONNREFUSED the kernel has forgotten the connection, and every send() fails with ENOTCONN.
	 */
	if (n < 0 && (errno == ECONNREFUSED || errno == ENOTCONN || errno == EPIPE))
		n = sendto(j->fd, m->bytes, m->len, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&j->at,
			   sizeof j->at);
	return n == (ssize_t)m->len;
}

/*
 * Sends the number of lost messages. Any user can fill the journal's socket for a while: readers of the audit must see
 * that lines are missing, and where.
 */
static void journal_send_lost_count(struct journal *j)
{
	struct journal_message m;
	char                   words[80];

	snprintf(words, sizeof words, "audit: journal: written again, without %llu lines",
		 (unsigned long long)j->losing);
	journal_message_init(&m, JOURNAL_NOTICE, words);
	if (journal_write_message(j, &m))
		j->losing = 0;
}

void journal_send_message(struct journal *j, const struct journal_message *m)
{
	if (!journal_listens(j))
		return;
	if (j->losing)
		journal_send_lost_count(j);
	if (journal_write_message(j, m))
		return;
	j->lost++;
	j->losing++;
}

void journal_close(struct journal *j)
{
	struct pollfd p = { j->fd >= 0 ? j->fd : j->text_fd, POLLOUT, 0 };

	if (j->losing) {
		/*
		 * brigd ends. A process that fills the socket may delay that by so much and no more. A socket without a
		 * peer is always writable, so it is connected again: the journal may have been started anew.
		 */
		if (j->fd < 0 || connect(j->fd, (const struct sockaddr *)&j->at, sizeof j->at) == 0)
			poll(&p, 1, JOURNAL_LAST_WAIT_MS);
		journal_send_lost_count(j);
	}
	fd_closep(&j->fd);
	j->text_fd = -1;
}

void journal_log_text(struct journal *j, enum journal_priority priority, const char *fmt, ...)
{
	struct journal_message m;
	char                   words[1024];
	va_list                ap;

	va_start(ap, fmt);
	vsnprintf(words, sizeof words, fmt, ap);
	va_end(ap);
	journal_message_init(&m, priority, words);
	journal_send_message(j, &m);
}
