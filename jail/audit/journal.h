/*
 * journal.h - the system's journal, in its own protocol.
 *
 * One datagram a message, fields with a length before their value, so that no
 * value can begin another field. The socket is connected once, before its owner
 * confines itself. If the journal's socket was made anew since, messages are sent to
 * its path, which takes no connect(). Sending never blocks; the first message that is
 * taken again comes after one with the number of those that were lost.
 */
#pragma once
#include "err.h"

#include <sys/un.h>

#define JOURNAL_SOCKET "/run/systemd/journal/socket"
enum { JOURNAL_MESSAGE_MAX = 16 * 1024 };
enum journal_priority { JOURNAL_ERROR = 3, JOURNAL_WARNING, JOURNAL_NOTICE, JOURNAL_INFO };

struct journal {
	struct sockaddr_un at;      /* of the journal's socket */
	int                fd;      /* -1: there is none */
	int                text_fd; /* where MESSAGE goes when fd is -1; borrowed; -1: nowhere */
	uint64_t           lost;    /* messages that were not taken */
	uint64_t           losing;  /* those of them since the last message about lost ones */
};
#define JOURNAL_NONE ((struct journal){ .fd = -1, .text_fd = -1 })

/* If path is NULL, or no process receives there, messages go to text_fd. */
void journal_open(struct journal *ret, const char *path, int text_fd);
/*
 * Sends how many messages were lost, for which it waits one second at most: only a process that fills the socket keeps
 * it that long.
 */
void journal_close(struct journal *j);

static inline bool journal_listens(const struct journal *j)
{
	return j->fd >= 0 || j->text_fd >= 0;
}

/* A message that is being built. If a field does not fit, the whole message is lost. */
struct journal_message {
	char   bytes[JOURNAL_MESSAGE_MAX];
	size_t len;
	size_t words, words_len; /* offset and length of MESSAGE, for text_fd */
	bool   full;
};
/* words: one line of printable text. */
void journal_message_init(struct journal_message *m, enum journal_priority priority, const char *words);
void journal_add_field(struct journal_message *m, const char *field, const void *value, size_t len);
void journal_send_message(struct journal *j, const struct journal_message *m);

/* A message without further fields. Text from clients must be made plain before. */
void journal_log_text(struct journal *j, enum journal_priority priority, const char *fmt, ...) printf_like(3, 4);
