/*
 * connection.h - one client, as long as it is connected.
 *
 * The server never waits for a client. Messages that the client's socket (some 200
 * KiB) does not take at once are kept and sent later: one connection may have many
 * runs, whose events come at the same moment. When too much has been kept, the
 * connection is closed, and its runs end.
 */
#pragma once
#include "client_protocol.h"
#include "server.h"

enum { UNSENT_MAX = 512, UNSENT_BYTES_MAX = 512 * 1024, ENDED_MAX = 16 };

struct unsent;

struct connection {
	LIST_ENTRY(connection)    link;
	struct server              *server;
	struct server_user         *user;
	struct loop_source        source;
	struct peer               peer;
	const struct access_rule *access_rule; /* NULL: its access was withdrawn */
	bool                      takes_additions; /* its hello had a version: see brig-protocol(7), VERSIONS */
	size_t                    runs; /* that have not ended: waiting runs and calls in sessions count too */
	struct {
		char     id[RUN_ID_LEN + 1];
		uint32_t calls; /* of tools, which the client has reported */
	} ended[ENDED_MAX];               /* the last runs with tools that have ended */
	unsigned                  ended_next;
	/* number of the reading that it waits for (reload.h), or 0; tag of its request */
	uint64_t                  reload, reload_tag;
	double                    heard_ms;
	TAILQ_HEAD(, unsent)      unsent;
	size_t                    unsent_len, unsent_bytes;
};

/* --- connection_life.c --- */

/* Takes the socket over if it succeeds. */
must_use struct connection *client_connection_open(struct server *d, int sock, const struct peer *peer,
					    const struct access_rule *may,
					    struct err *e);
/* Frees c. Its runs are cancelled, except sessions that stay. */
void connection_close(struct connection *c);

/* --- connection.c --- */

/* A run with tools has ended: the client may still report its last calls. calls: how many it has reported. */
void connection_remember_ended_run(struct connection *c, const char *run, uint32_t calls);

/*
 * Takes answer over. If it can be neither sent nor kept, the connection ends at the loop's next turn; c is valid until
 * then.
 */
void connection_send(struct connection *c, json_t *answer, const int *fds, size_t n);
/* The same for a text. len 0 stands for a text that did not fit into its buffer: it ends the connection. */
void connection_send_text(struct connection *c, const char *text, size_t len, const int *fds, size_t n);
/* Sends the error, counts the refusal, and writes it to the audit. */
void connection_refuse_request(struct connection *c, const struct protocol_request *request, const struct denial *why);
/* To a peer that gets no connection. Takes answer over. */
void connection_send_to_refused_peer(int sock, json_t *answer);
/* Kept messages: sends as many as the socket takes now; drops all of them. */
void connection_flush_unsent(struct connection *c);
void connection_drop_unsent(struct connection *c);
