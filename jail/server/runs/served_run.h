/*
 * served_run.h - one run as the server knows it, from its start until nothing is left of it.
 *
 * It may outlive its connection: its end then goes to the audit alone.
 */
#pragma once
#include "audit_entry.h"
#include "code_digest.h"
#include "connection.h"
#include "run.h"
#include "run_plan.h"
#include "served_net.h"

/* For the audit. */
struct attempt {
	int64_t             time_us;
	const char         *op, *mode; /* mode NULL: a command */
	char                code_sha256[CODE_DIGEST_HEX + 1]; /* "": a command */
	int64_t             code_bytes;
	char                principal[PROTOCOL_NAME_MAX + 1]; /* "": the request names none */
	struct audit_limits asked;
};

struct session;

enum { SERVED_PROGRAM_MAX = 96 };

struct served_run {
	TAILQ_ENTRY(served_run)      link;
	struct server                 *server;
	struct connection           *connection; /* NULL: gone */
	struct peer                  peer;       /* the client that asked for it */
	const struct served_profile *profile;
	struct limits                limits;
	struct quota_part            part;       /* what it has taken of the quota */
	uint64_t                     tag;
	bool                         with_stdin, with_result;
	/* the client's end of their socket, or a session's end to its server, until handed on; then -1 */
	int                          tools;
	bool                         with_tools, is_waiting;
	uint32_t                     calls;      /* of tools, which the client has reported */
	char                         id[RUN_ID_LEN + 1];
	/* the beginning of what runs, for people; it is theirs: not trusted */
	char                         program[SERVED_PROGRAM_MAX];
	double                       asked_ms;
	struct run                   run;
	struct served_net            net;
	struct loop_source           source;
	struct attempt               attempt;
	struct session              *session;    /* the one that this run is, or NULL */
};

/* Takes the quota and asks the backend; gives the quota back on failure. fds: those of the request, borrowed. */
must_use int served_run_start(struct connection *c, const struct protocol_request *request, struct run_plan *plan,
			      const char *id, const int *fds, struct denial *why);
/*
 * The service ends: for each run that is left, and its calls, the client gets a record and the audit a line, as
 * cancelled and without figures.
 */
void         served_runs_report_all_cancelled(struct server *d);
/* True: a call of a tool takes long, and the wall clock stops. False: none does any more. */
void         served_run_set_waiting(struct served_run *r, bool waits);

/* How many runs of this user began within the last 50 ms: most of what their start costs is counted for no run. */
size_t served_runs_count_young(const struct server *d, uid_t uid, double now_ms);

struct served_run *served_run_find(const struct server *d, const char *id); /* or NULL */

/* The connection is about to close: cancels its runs, except sessions that stay, and sends it nothing more. */
void served_runs_drop_connection(struct server *d, struct connection *c);
