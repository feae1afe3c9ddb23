/*
 * connection.h - one client, as long as it is connected.
 *
 * Nobody waits for a client: what its socket does not take at once is not sent
 * at all, and the connection is given up, its runs with it.
 */
#pragma once
#include "client_protocol.h"
#include "door.h"

struct connection {
	LIST_ENTRY(connection)    link;
	struct door              *door;
	struct loop_source        source;
	struct peer               peer;
	const struct access_rule *may;
	size_t                    runs; /* that have not ended */
	double                    heard_ms;
};

/* Takes the socket over, also when it fails. */
must_use struct connection *connection_open(struct door *d, int sock, const struct peer *peer, const struct access_rule *may,
					    struct err *e);
/* Its runs are asked to end. */
void connection_close(struct connection *c);

/* Takes the value over. What cannot be sent ends the connection, a little later: c is good until the loop's next turn. */
void connection_send(struct connection *c, json_t *answer, const int *fds, size_t n);
/* To somebody who gets no connection. */
void connection_tell(int sock, json_t *answer);
