#include "datagram.h"

#include "fd.h"
#include "packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void datagram_done(struct datagram *d)
{
	protocol_answer_done(&d->answer);
	for (size_t i = 0; i < d->fds; i++)
		fd_closep(&d->fd[i]);
	*d = DATAGRAM_NONE;
}

static int send_text(int sock, const char *text, size_t len, const int *fds, size_t n, struct err *e)
{
	if (len > PROTOCOL_MAX || n > PROTOCOL_FDS_MAX)
		return err_set(e, ERR_BAD_SPEC, "the request has %zu bytes and %zu descriptors, of at most %d and %d: fewer or shorter arguments and variables",
			       len, n, PROTOCOL_MAX, PROTOCOL_FDS_MAX);
	errno = -packet_send(sock, text, len, fds, n);
	return errno ? err_sys(e, "set-up step ask-brigd") : 0;
}

int datagram_send(int sock, const json_t *request, const int *fds, size_t n, struct err *e)
{
	char *text = json_dumps(request, JSON_COMPACT);
	int   r    = text ? send_text(sock, text, strlen(text), fds, n, e) : err_set(e, ERR_LIMIT, "out of memory");

	free(text);
	return r;
}

int datagram_parse(struct datagram *ret, const char *text, size_t len, const int *fd, size_t fds, struct err *e)
{
	scoped_datagram d = DATAGRAM_NONE;

	for (d.fds = 0; d.fds < fds; d.fds++)
		d.fd[d.fds] = fd[d.fds];
	*ret = DATAGRAM_NONE;
	if (protocol_parse_answer(&d.answer, text, len, d.fds, e) < 0)
		return err_wrap(e, "brigd broke the protocol");
	*ret = d;
	d    = DATAGRAM_NONE;
	return 0;
}

enum datagram_answer datagram_receive(int sock, struct datagram *ret, struct err *e)
{
	char    text[PROTOCOL_MAX];
	int     fd[DATAGRAM_FDS_MAX];
	size_t  fds;
	ssize_t got = packet_receive(sock, text, sizeof text, fd, DATAGRAM_FDS_MAX, &fds);

	*ret = DATAGRAM_NONE;
	if (got == 0)
		return DATAGRAM_END;
	if (got < 0) {
		err_sys(e, "brigd cannot be heard");
		return DATAGRAM_BROKEN;
	}
	return datagram_parse(ret, text, (size_t)got, fd, fds, e) < 0 ? DATAGRAM_BROKEN : DATAGRAM_RECEIVED;
}

static json_t *take_reply(struct datagram *d, int *fd, struct err *e)
{
	const json_t *error = json_object_get(d->answer.source, "error");

	if (d->answer.kind == ANSWER_REPLY) {
		if (fd)
			*fd = fd_take(&d->fd[0]);
		return json_incref(d->answer.source);
	}
	if (d->answer.kind == ANSWER_ERROR)
		err_set(e, ERR_DENIED, "%s", json_string_value(json_object_get(error, "message")));
	else
		err_set(e, ERR_PROTOCOL, "brigd sent an event where a reply was expected");
	return NULL;
}

json_t *datagram_exchange_fd(int sock, const json_t *request, int *fd, struct err *e)
{
	scoped_datagram d = DATAGRAM_NONE;

	if (datagram_send(sock, request, NULL, 0, e) < 0)
		return NULL;
	switch (datagram_receive(sock, &d, e)) {
	case DATAGRAM_RECEIVED:
		return take_reply(&d, fd, e);
	case DATAGRAM_END:
		err_set(e, ERR_SETUP, "brigd gave no answer, and closed the connection");
		return NULL;
	case DATAGRAM_BROKEN:
		return NULL;
	}
	return NULL;
}

json_t *datagram_exchange(int sock, const json_t *request, struct err *e)
{
	return datagram_exchange_fd(sock, request, NULL, e);
}
