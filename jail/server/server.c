#define _GNU_SOURCE
#include "server.h"

#include "attempt.h"
#include "clock.h"
#include "connection.h"
#include "server_user.h"
#include "fd.h"
#include "queue.h"
#include "session.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

void server_init(struct server *d)
{
	LIST_INIT(&d->users);
	LIST_INIT(&d->connections);
	TAILQ_INIT(&d->runs);
	TAILQ_INIT(&d->sessions);
	figures_init(&d->figures);
	d->loop.fd     = -1;
	d->queue_timer  = (struct loop_timer){ .due = queue_start_runs, .owner = d };
	d->memory_timer = (struct loop_timer){ .due = session_close_idle_if_memory_short, .owner = d };
}

/*
 * Called before the server is confined, whose filter forbids these calls. Most descriptors are for clients and runs, a
 * quarter for requests that wait. A private server has one user, so it need not share processors.
 */
static int read_host_limits(struct server *d, struct err *e)
{
	struct rlimit files;
	long          n = d->is_private ? 1 : sysconf(_SC_NPROCESSORS_ONLN);

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return err_sys(e, "the limit of open files");
	d->processors     = n > 1 ? (size_t)n : 1;
	d->queued_fds_max = files.rlim_cur / 4;
	return 0;
}

int server_open(struct server *d, struct err *e)
{
	d->born_ms = clock_ms(CLOCK_MONOTONIC);
	d->born_at = clock_ms(CLOCK_REALTIME) / 1000;
	d->gone    = calloc(SESSION_GONE_MAX, sizeof *d->gone);
	if (!d->gone)
		return err_set(e, ERR_LIMIT, "out of memory");
	d->quota   = (struct quota){ .all = { .runs = d->config.runs, .memory_bytes = d->config.memory_bytes } };
	profile_set_init(&d->profiles, &d->places, d->is_private);
	return read_host_limits(d, e) < 0 ? -1 : loop_open(&d->loop, e);
}

void server_close(struct server *d)
{
	while (!LIST_EMPTY(&d->connections))
		connection_close(LIST_FIRST(&d->connections));
	profile_set_done(&d->profiles);
	figures_done(&d->figures);
	config_done(&d->config);
	config_done(&d->first_config);
	loop_close(&d->loop);
	free(d->gone);
	d->gone = NULL;
}

/* --- admission --- */

/* NULL with the reason. */
static const struct access_rule *find_access_of_peer(const struct server *d, int sock, struct peer *peer,
						     struct denial *why)
{
	struct peer_groups        groups;
	const struct access_rule *may;
	struct err                e;

	if (peer_identify(peer, &groups, sock, &e) < 0) {
		deny_err(why, DENIAL_denied, NULL, &e);
		return NULL;
	}
	may = access_find(&d->access, peer, &groups);
	if (!may)
		deny(why, DENIAL_denied, NULL,
		     "user %u may not use this service; membership of the group brig, or brig.json, allows it",
		     peer->uid);
	return may;
}

int server_admit_client(struct server *d, int sock, struct denial *why)
{
	scoped_fd                 taken = sock;
	struct peer               peer = PEER_UNKNOWN;
	const struct access_rule *may  = find_access_of_peer(d, sock, &peer, why);
	struct err                e;

	if (may && (d->connections_len >= CONNECTIONS_MAX ||
		    server_user_count_connections(d, peer.uid) >= CONNECTIONS_OF_USER_MAX)) {
		deny(why, DENIAL_busy, NULL, "%d connections in all, and %d of one user: there can be no more",
		     CONNECTIONS_MAX, CONNECTIONS_OF_USER_MAX);
		why->retry_after_ms = 1000;
	} else if (may) {
		if (client_connection_open(d, sock, &peer, may, &e)) {
			fd_take(&taken);
			return 0;
		}
		err_wrap(&e, "set-up step open-connection");
		deny_err(why, DENIAL_broken, NULL, &e);
	}
	d->counts.refused[why->code]++;
	connection_send_to_refused_peer(sock, protocol_error(why, TAG_NONE));
	attempt_write_peer_refused(d, &peer, why);
	if (!d->is_private)
		log_line(&d->log, "a client is refused: %s", why->text);
	return -1;
}

/* --- one client --- */

int server_serve_one_client(struct server *d, int sock, struct err *e)
{
	struct denial why;

	if (server_admit_client(d, sock, &why) < 0)
		return err_set(e, ERR_DENIED, "%s", why.text);
	while (d->connections_len || d->runs_len)
		if (loop_turn(&d->loop, -1, e) < 0)
			return -1;
	return 0;
}
