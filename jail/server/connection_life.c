/* connection_life.c - opens a connection, reads its requests, and closes it */
#define _GNU_SOURCE
#include "clock.h"
#include "connection.h"
#include "server_user.h"
#include "fd.h"
#include "gate.h"
#include "packet.h"
#include "queue.h"
#include "served_run.h"
#include "session.h"

#include <errno.h>
#include <stdlib.h>

/* --- requests --- */

struct datagram {
	char    bytes[PROTOCOL_MAX + 1]; /* one more, so that a message that is too long is refused and not cut */
	ssize_t len;
	int     fd[PROTOCOL_FDS_MAX];
	size_t  fds;
};

static void connection_on_readable(void *owner)
{
	struct connection *c = owner;
	struct datagram    in;
	scoped_request     request = { .tag = TAG_NONE };
	struct denial      why;
	int                r;

	if (!TAILQ_EMPTY(&c->unsent))
		connection_flush_unsent(c);
	in.len = packet_receive(c->source.fd, in.bytes, sizeof in.bytes, in.fd, ARRAY_LEN(in.fd), &in.fds);
	if (in.len < 0 && errno == EAGAIN)
		return;
	if (in.len == 0 || (in.len < 0 && errno != EMSGSIZE)) {
		connection_close(c);
		return;
	}
	c->heard_ms = clock_ms(CLOCK_MONOTONIC);
	r = in.len < 0 ? deny(&why, DENIAL_bad_message, NULL, "more than %d bytes, or more than %d descriptors",
			      PROTOCOL_MAX, PROTOCOL_FDS_MAX)
		       : protocol_parse(&request, in.bytes, (size_t)in.len, in.fds, &why);
	request.fd              = in.fd;
	request.fds             = in.fds;
	request.takes_additions = c->takes_additions;
	if (r < 0 || gate_serve_request(c, &request, &why) < 0)
		connection_refuse_request(c, &request, &why);
	packet_close_fds(in.fd, in.fds);
}

/* --- life --- */

struct connection *client_connection_open(struct server *d, int sock, const struct peer *peer,
					  const struct access_rule *may, struct err *e)
{
	struct connection *c = calloc(1, sizeof *c);

	if (!c) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	*c      = (struct connection){ .server      = d,
				       .source      = { sock, connection_on_readable, c },
				       .peer        = *peer,
				       .access_rule = may,
				       .heard_ms    = clock_ms(CLOCK_MONOTONIC) };
	c->user = server_user_add_connection(d, peer->uid, e);
	if (!c->user || loop_add(&c->user->loop, &c->source, e) < 0) {
		if (c->user)
			server_user_remove_connection(d, c->user);
		free(c);
		return NULL;
	}
	TAILQ_INIT(&c->unsent);
	LIST_INSERT_HEAD(&d->connections, c, link);
	d->connections_len++;
	d->counts.connections++;
	return c;
}

void connection_close(struct connection *c)
{
	queue_drop_connection(c);
	served_runs_drop_connection(c->server, c);
	session_calls_drop_connection(c->server, c);
	LIST_REMOVE(c, link);
	c->server->connections_len--;
	loop_remove(&c->user->loop, &c->source);
	server_user_remove_connection(c->server, c->user);
	close(c->source.fd);
	connection_drop_unsent(c);
	free(c);
}
