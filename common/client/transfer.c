#define _GNU_SOURCE
#include "transfer.h"

#include "denial.h"
#include "fd.h"
#include "member.h"

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

static bool transfer_is_all_sent(const struct transfer *t)
{
	return t->out_at == t->out_len;
}

/* It is no error if the other end stops reading: its own entries report what became of the files. */
static void transfer_send(struct transfer *t)
{
	ssize_t n = transfer_is_all_sent(t) ? 0
			       : send(t->source.fd, t->out + t->out_at, t->out_len - t->out_at,
				      MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n > 0)
		t->out_at += (size_t)n;
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		t->out_at = t->out_len;
	if (transfer_is_all_sent(t))
		loop_set_events(t->loop, &t->source, EPOLLIN);
}

/* --- what comes --- */

static void transfer_close_and_report(struct transfer *t, const struct err *why, bool is_session_gone)
{
	const struct transfer_events *events = t->events;
	void                         *owner  = t->owner;

	transfer_close(t);
	t->is_session_gone = is_session_gone;
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
		transfer_close_and_report(t, &e, false);
		return;
	}
	switch (file_entries_parse(&t->in, bytes, (size_t)n, &t->events->read, t->owner, &e)) {
	case ENTRIES_GO_ON:
		return;
	case ENTRIES_ENOUGH:
	case ENTRIES_END:
		transfer_close_and_report(t, NULL, false);
		return;
	case ENTRIES_BROKEN:
		transfer_close_and_report(t, &e, false);
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

/* Takes fd over. */
static int transfer_start(struct transfer *t, int fd, struct err *e)
{
	t->source = (struct loop_source){ .fd = fd, .ready = transfer_on_ready, .owner = t };
	fcntl(fd, F_SETFL, O_NONBLOCK);
	if (loop_add_events(t->loop, &t->source, EPOLLIN | EPOLLOUT, e) == 0)
		return 0;
	fd_closep(&t->source.fd);
	return -1;
}

static void transfer_on_reply(void *owner, struct datagram *d)
{
	struct transfer *t     = owner;
	const json_t    *error = json_object_get(d->answer.source, "error");
	struct err       e;

	if (d->answer.kind == ANSWER_ERROR) {
		err_set(&e, ERR_SETUP, "%s", member_text(error, "message"));
		transfer_close_and_report(t, &e,
					  strcmp(member_text(error, "code"), denial_code_name(DENIAL_not_found)) == 0);
		return;
	}
	brigd_link_detach(t->link, &t->question);
	/* datagram.h checks what belongs to a reply of files */
	if (d->answer.kind != ANSWER_REPLY || d->fds != 1)
		err_set(&e, ERR_PROTOCOL, "brigd has answered a question for files with something else");
	else if (transfer_start(t, fd_take(&d->fd[0]), &e) == 0)
		return;
	transfer_close_and_report(t, &e, false);
}

static void transfer_on_lost(void *owner, const struct err *why)
{
	transfer_close_and_report(owner, why, false);
}

int transfer_open(struct transfer *t, struct loop *loop, int fd, char *out, size_t out_len,
		  const struct transfer_events *events, void *owner, struct err *e)
{
	*t = (struct transfer){ .loop = loop, .out = out, .out_len = out_len, .events = events, .owner = owner };
	if (transfer_start(t, fd, e) == 0)
		return 0;
	transfer_close(t);
	return -1;
}

int transfer_ask(struct transfer *t, struct brigd_link *link, const char *session, char *out, size_t out_len,
		 const struct transfer_events *events, void *owner, struct err *e)
{
	*t = (struct transfer){ .link = link, .out = out, .out_len = out_len, .events = events, .owner = owner };
	t->loop      = brigd_link_loop(link);
	t->source.fd = -1;
	t->message   = json_pack("{ss ss}", "op", "files", "session", session);
	t->question  = (struct question){ .answered = transfer_on_reply,
					  .lost     = transfer_on_lost,
					  .owner    = t,
					  .message  = t->message,
					  .repeated = true };
	if (brigd_link_ask(link, &t->question, e) == 0)
		return 0;
	transfer_close(t);
	return -1;
}

void transfer_close(struct transfer *t)
{
	if (!t->loop)
		return;
	if (t->link)
		brigd_link_detach(t->link, &t->question);
	if (t->source.fd >= 0)
		loop_remove(t->loop, &t->source);
	fd_closep(&t->source.fd);
	json_decref(t->message);
	free(t->out);
	*t = (struct transfer){ 0 };
}
