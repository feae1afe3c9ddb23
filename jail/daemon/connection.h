/*
 * connection.h - one client, as long as it is connected.
 *
 * Nobody waits for a client. What its socket does not take at once (some 200
 * KiB) is kept and sent later: one connection may have many runs, whose events
 * come at the same moment. Who does not read at all loses the connection, and
 * its runs with it, when too much has been kept.
 */
#pragma once
#include "client_protocol.h"
#include "door.h"

enum { UNSENT_MAX = 512, UNSENT_BYTES_MAX = 512 * 1024, ENDED_MAX = 16 };

struct unsent;

struct connection {
	LIST_ENTRY(connection)    link;
	struct door              *door;
	struct door_user         *user;
	struct loop_source        source;
	struct peer               peer;
	const struct access_rule *may; /* NULL: its access was withdrawn */
	size_t                    runs; /* that have not ended */
	struct {
		char     id[RUN_ID_LEN + 1];
		uint32_t calls; /* that were told */
	} ended[ENDED_MAX];               /* the last runs with tools that have ended */
	unsigned                  ended_next;
	uint64_t                  reload, reload_tag; /* the reading that it waits for (reload.h), or 0 */
	double                    heard_ms;
	TAILQ_HEAD(, unsent)      unsent;
	size_t                    unsent_len, unsent_bytes;
};

/* --- connection_life.c --- */

/* Takes the socket over, also when it fails. */
must_use struct connection *connection_open(struct door *d, int sock, const struct peer *peer, const struct access_rule *may,
					    struct err *e);
/* Its runs are asked to end. */
void connection_close(struct connection *c);

/* One of its runs with tools has ended: its client may tell of its last calls. */
void connection_remember(struct connection *c, const char *run, uint32_t calls);

/* --- answers --- */

/* Takes the value over. What cannot be sent ends the connection, a little later: c is good until the loop's next turn. */
void connection_send(struct connection *c, json_t *answer, const int *fds, size_t n);
/* The same of a text; an empty one, which was too long for whoever made it, cannot be sent. */
void connection_send_text(struct connection *c, const char *text, size_t len, const int *fds, size_t n);
/* That is an error, and one more that was refused. */
void connection_refuse(struct connection *c, const struct protocol_request *request, const struct denial *why);
/* To somebody who gets no connection. */
void connection_tell(int sock, json_t *answer);
/* What was kept: as much as the socket takes now; or nothing of it any more. */
void connection_send_unsent(struct connection *c);
void connection_drop_unsent(struct connection *c);
