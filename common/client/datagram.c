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

int datagram_send(int sock, const json_t *request, const int *fds, size_t n, struct err *e)
{
	char  *text = json_dumps(request, JSON_COMPACT);
	size_t len  = text ? strlen(text) : 0;
	int    r    = 0;

	if (!text)
		r = err_set(e, ERR_LIMIT, "out of memory");
	else if (len > PROTOCOL_MAX || n > PROTOCOL_FDS_MAX)
		r = err_set(e, ERR_BAD_SPEC,
			    "the request has %zu bytes and %zu descriptors, of at most %d and %d: fewer or shorter "
			    "arguments and variables",
			    len, n, PROTOCOL_MAX, PROTOCOL_FDS_MAX);
	else if ((errno = -packet_send(sock, text, len, fds, n)))
		r = err_sys(e, "set-up step ask-brigd");
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

json_t *datagram_exchange(int sock, const json_t *request, int *fd, struct err *e)
{
	scoped_datagram      d = DATAGRAM_NONE;
	enum datagram_answer answer;

	if (datagram_send(sock, request, NULL, 0, e) < 0)
		return NULL;
	answer = datagram_receive(sock, &d, e);
	if (answer == DATAGRAM_END)
		err_set(e, ERR_SETUP, "brigd gave no answer, and closed the connection");
	if (answer != DATAGRAM_RECEIVED)
		return NULL;
	if (d.answer.kind == ANSWER_REPLY) {
		if (fd)
			*fd = fd_take(&d.fd[0]);
		return json_incref(d.answer.source);
	}
	if (d.answer.kind == ANSWER_ERROR)
		err_set(e, ERR_DENIED, "%s",
			json_string_value(json_object_get(json_object_get(d.answer.source, "error"), "message")));
	else
		err_set(e, ERR_PROTOCOL, "brigd sent an event where a reply was expected");
	return NULL;
}

int datagram_open_files(int sock, const char *session, struct err *e)
{
	json_t *request = json_pack("{ss ss}", "op", "files", "session", session);
	int     fd      = -1;

	if (!request)
		return err_set(e, ERR_BAD_SPEC, "the session's name is not UTF-8");
	json_decref(datagram_exchange(sock, request, &fd, e));
	json_decref(request);
	return fd;
}
