#define _GNU_SOURCE
#include "connection.h"

#include "attempt.h"
#include "packet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { UNSENT_FDS_MAX = PIPES_MAX + 1 }; /* stdout, stderr, stdin, result, tools */

/* --- answers --- */

/* The loop sees the end of file at its next turn and closes c then: callers may still be using it now. */
static void connection_shut_down(struct connection *c)
{
	shutdown(c->source.fd, SHUT_RDWR);
}

/* A message that the client's socket has not taken yet. */
struct unsent {
	TAILQ_ENTRY(unsent) link;
	char               *text;
	size_t              len;
	int                 fd[UNSENT_FDS_MAX];
	size_t              fds;
};

static void unsent_message_free(struct unsent *u)
{
	if (!u)
		return;
	while (u->fds)
		close(u->fd[--u->fds]);
	free(u->text);
	free(u);
}

void connection_remember_ended_run(struct connection *c, const char *run, uint32_t calls)
{
	unsigned i = c->ended_next++ % ENDED_MAX;

	memcpy(c->ended[i].id, run, sizeof c->ended[i].id);
	c->ended[i].calls = calls;
}

/* Duplicates the descriptors: the caller closes its own. NULL: memory or descriptors are short. */
static struct unsent *unsent_message_new(const char *text, size_t len, const int *fds, size_t n)
{
	struct unsent *u = calloc(1, sizeof *u);

	if (!u || n > UNSENT_FDS_MAX || !(u->text = malloc(len))) {
		unsent_message_free(u);
		return NULL;
	}
	memcpy(u->text, text, len);
	u->len = len;
	for (; u->fds < n; u->fds++)
		if ((u->fd[u->fds] = fcntl(fds[u->fds], F_DUPFD_CLOEXEC, 0)) < 0) {
			unsent_message_free(u);
			return NULL;
		}
	return u;
}

static int send_message_text(int sock, const char *text, size_t len, const int *fds, size_t n)
{
	return len == 0 ? -ENOMEM : len > PROTOCOL_MAX ? -EMSGSIZE : packet_send(sock, text, len, fds, n);
}

/* Takes the value over; NULL when memory is short. */
static char *dump_and_free_json(json_t *answer)
{
	char *text = json_dumps(answer, JSON_COMPACT | JSON_REAL_PRECISION(12));

	json_decref(answer);
	return text;
}

void connection_send_to_refused_peer(int sock, json_t *answer)
{
	char *text = dump_and_free_json(answer);

	(void)!send_message_text(sock, text, text ? strlen(text) : 0, NULL, 0);
	free(text);
}

static void drop_first_unsent_message(struct connection *c)
{
	struct unsent *u = TAILQ_FIRST(&c->unsent);

	TAILQ_REMOVE(&c->unsent, u, link);
	c->unsent_len--;
	c->unsent_bytes -= u->len;
	unsent_message_free(u);
}

void connection_flush_unsent(struct connection *c)
{
	struct unsent *u;

	while ((u = TAILQ_FIRST(&c->unsent))) {
		int r = packet_send(c->source.fd, u->text, u->len, u->fd, u->fds);

		if (r == -EAGAIN)
			return;
		if (r < 0)
			connection_shut_down(c);
		drop_first_unsent_message(c);
	}
	loop_set_events(&c->user->loop, &c->source, EPOLLIN);
}

/* -1: too much is kept already, or memory or descriptors are short. */
static int queue_unsent_message(struct connection *c, const char *text, size_t len, const int *fds, size_t n)
{
	bool           fits = c->unsent_len < UNSENT_MAX && c->unsent_bytes < UNSENT_BYTES_MAX;
	struct unsent *u    = fits ? unsent_message_new(text, len, fds, n) : NULL;

	if (!u)
		return -1;
	if (TAILQ_EMPTY(&c->unsent))
		loop_set_events(&c->user->loop, &c->source, EPOLLIN | EPOLLOUT);
	TAILQ_INSERT_TAIL(&c->unsent, u, link);
	c->unsent_len++;
	c->unsent_bytes += u->len;
	return 0;
}

/* Messages stay in order: while older ones are kept, the new one is kept too. */
void connection_send_text(struct connection *c, const char *text, size_t len, const int *fds, size_t n)
{
	int r = TAILQ_EMPTY(&c->unsent) ? send_message_text(c->source.fd, text, len, fds, n) : -EAGAIN;

	if (r == -EAGAIN)
		r = len ? queue_unsent_message(c, text, len, fds, n) : -ENOMEM;
	if (r < 0)
		connection_shut_down(c);
}

void connection_send(struct connection *c, json_t *answer, const int *fds, size_t n)
{
	char *text = dump_and_free_json(answer);

	connection_send_text(c, text, text ? strlen(text) : 0, fds, n);
	free(text);
}

void connection_refuse_request(struct connection *c, const struct protocol_request *request, const struct denial *why)
{
	json_t *error = protocol_error(why, request->tag);

	if (c->takes_additions)
		protocol_error_put_facts(error, why);
	c->server->counts.refused[why->code]++;
	connection_send(c, error, NULL, 0);
	attempt_write_request_refused(c, request, why);
}

void connection_drop_unsent(struct connection *c)
{
	while (!TAILQ_EMPTY(&c->unsent))
		drop_first_unsent_message(c);
}
