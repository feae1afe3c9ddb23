/*
 * served_run.h - one run as the door knows it, from the backend's yes to its last word.
 *
 * It outlives its connection: what is told of it then goes to the audit alone.
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
	struct audit_limits asked;
};

struct session;

struct served_run {
	TAILQ_ENTRY(served_run)      link;
	struct door                 *door;
	struct connection           *connection; /* NULL: gone */
	struct peer                  peer;       /* who asked */
	const struct served_profile *profile;
	struct limits                limits;
	struct quota_part            part;       /* of the quota, that it has taken */
	uint64_t                     tag;
	bool                         with_stdin, with_result;
	int                          tools;      /* the client's end of the socket to them, until it has it; -1 */
	bool                         with_tools, is_waiting;
	uint32_t                     calls;      /* that were told */
	char                         id[RUN_ID_LEN + 1];
	double                       asked_ms;
	struct run                   run;
	struct served_net            net;
	struct loop_source           source;
	struct attempt               attempt;
	struct session              *session;    /* that it is, or NULL */
};

/* Asks the backend; takes the quota, and gives it back when nothing came of it. fds: the request's. */
must_use int served_run_start(struct connection *c, const struct protocol_request *request, struct run_plan *plan,
			      const char *id, const int *fds, struct denial *why);
void         served_run_cancel(struct served_run *r, enum exit_reason reason);
/* A call of a tool takes long, or none does any more. */
void         served_run_wait(struct served_run *r, bool waits);

/* Of this user, that began a moment ago: most of what they cost is in no run's account. */
size_t served_runs_young(const struct door *d, uid_t uid, double now_ms);

struct served_run *served_run_find(const struct door *d, const char *id); /* or NULL */

/* The connection is about to close: its runs end, and tell it nothing. */
void served_runs_forget(struct door *d, struct connection *c);
