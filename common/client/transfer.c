#define _GNU_SOURCE
#include "transfer.h"

#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { READ_AT_ONCE = 64 * 1024 };

/* --- what goes --- */

void transfer_add_entry(FILE *out, enum file_kind kind, const char *name, const void *bytes, size_t len)
{
	struct file_entry entry = { .kind = kind, .name_len = (uint32_t)strlen(name), .bytes = len };

	fwrite(&entry, sizeof entry, 1, out);
	fwrite(name, 1, entry.name_len, out);
	if (len)
		fwrite(bytes, 1, len, out);
}

static bool transfer_all_sent(const struct transfer *t)
{
	return t->out_at == t->out_len;
}

/* It is no error if the other end stops reading: its own entries report what became of the files. */
static void transfer_send(struct transfer *t)
{
	ssize_t n = transfer_all_sent(t) ? 0
			       : send(t->source.fd, t->out + t->out_at, t->out_len - t->out_at,
				      MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n > 0)
		t->out_at += (size_t)n;
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		t->out_at = t->out_len;
	if (transfer_all_sent(t))
		loop_set_events(t->loop, &t->source, EPOLLIN);
}

/* --- what comes --- */

static void transfer_end(struct transfer *t, const struct err *why)
{
	const struct transfer_events *events = t->events;
	void                         *owner  = t->owner;

	transfer_close(t);
	if (events->ended)
		events->ended(owner, why);
}

static void transfer_receive(struct transfer *t)
{
	char       bytes[READ_AT_ONCE];
	ssize_t    n = recv(t->source.fd, bytes, sizeof bytes, MSG_DONTWAIT);
	struct err e;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		err_set(&e, ERR_PROTOCOL, "files: they ended in the middle");
		transfer_end(t, &e);
		return;
	}
	switch (file_entries_parse(&t->in, bytes, (size_t)n, &t->events->read, t->owner, &e)) {
	case ENTRIES_GO_ON:
		return;
	case ENTRIES_ENOUGH:
	case ENTRIES_END:
		transfer_end(t, NULL);
		return;
	case ENTRIES_BROKEN:
		transfer_end(t, &e);
		return;
	}
}

static void transfer_on_ready(void *owner)
{
	struct transfer *t = owner;

	transfer_send(t);
	transfer_receive(t);
}

/* --- its life --- */

int transfer_open(struct transfer *t, struct loop *loop, int fd, char *out, size_t out_len,
		  const struct transfer_events *events, void *owner, struct err *e)
{
	*t        = (struct transfer){ .out = out, .out_len = out_len, .events = events, .owner = owner };
	t->source = (struct loop_source){ .fd = fd, .ready = transfer_on_ready, .owner = t };
	fcntl(fd, F_SETFL, O_NONBLOCK);
	if (loop_add_events(loop, &t->source, EPOLLIN | EPOLLOUT, e) == 0) {
		t->loop = loop;
		return 0;
	}
	fd_closep(&t->source.fd);
	free(t->out);
	*t = (struct transfer){ 0 };
	return -1;
}

void transfer_close(struct transfer *t)
{
	if (!t->loop)
		return;
	loop_remove(t->loop, &t->source);
	fd_closep(&t->source.fd);
	free(t->out);
	*t = (struct transfer){ 0 };
}
