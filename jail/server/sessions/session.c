#define _GNU_SOURCE
#include "session.h"

#include "clock.h"
#include "fd.h"
#include "packet.h"
#include "served_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { CLOSE_MS_MAX = 3000 }; /* less than SESSION_GRACE_MS */

/* --- clocks --- */

static void session_on_timer(void *owner)
{
	struct session *s   = owner;
	double          now = clock_ms(CLOCK_MONOTONIC);
	char            why[SESSION_WHY_MAX];

	if (s->state == SESSION_CLOSES) { /* it was asked to end, and does not */
		run_request_cancel(&s->run->run, EXIT_cancelled);
		return;
	}
	if (session_lifetime_left(s, now) <= 0)
		snprintf(why, sizeof why, "its lifetime of %.3g s was over", (double)s->limits.lifetime_ms / 1000);
	else if (!s->calls_len && session_idle_left(s, now) <= 0)
		snprintf(why, sizeof why, "it was idle for %.3g s", (double)s->limits.idle_ms / 1000);
	else {
		if (session_freeze_left(s, now) <= 0)
			session_freeze(s);
		session_set_timer(s);
		return;
	}
	session_request_close(s, why);
}

/*
 * The process that watches its run ends it when that is over, too, if it is not closed in time. False: it did not take
 * the message.
 */
bool session_send_lifetime(const struct session *s)
{
	return run_set_session_lifetime(&s->run->run, s->limits.lifetime_ms + SESSION_GRACE_MS);
}

int session_renew(struct session *s, uint64_t lifetime_ms, struct denial *why)
{
	const struct served_profile *profile = s->run->profile;
	uint64_t                     most = profile->profile.ceilings.lifetime_ms, before = s->limits.lifetime_ms;
	uint64_t                     age  = (uint64_t)(clock_ms(CLOCK_MONOTONIC) - s->opened_ms);

	if (age > most || lifetime_ms > most - age)
		return deny(why, DENIAL_above_ceiling, "lifetime_ms",
			    "%.10g s from now on are above the ceiling of profile %s: "
			    "a session lives for at most %.10g s, and this one was opened %.10g s ago",
			    (double)lifetime_ms / 1000, profile->name, (double)most / 1000, (double)(age / 1000));
	s->limits.lifetime_ms = age + lifetime_ms;
	if (!session_send_lifetime(s)) {
		s->limits.lifetime_ms = before;
		return deny(why, DENIAL_busy, "session", "it takes no request now; try again");
	}
	session_note_use(s);
	return 0;
}

/* --- messages of its server --- */

/* One of the two reports has come for which a session waits before it opens. */
static void session_open_after_both_reports(struct session *s, enum session_state with)
{
	const char *name = *s->name ? s->name : NULL;

	switch (s->state) {
	case SESSION_STARTS:
		s->state = with;
		return;
	case SESSION_AWAITS_SET_UP:
	case SESSION_AWAITS_SERVER:
		if (s->state == with)
			return;
		s->state = SESSION_OPEN;
		session_note_use(s);
		if (s->run->connection)
			connection_send(s->run->connection,
					protocol_opened_event(s->run->id, s->run->tag, name, s->limits.idle_ms,
							s->limits.lifetime_ms),
					NULL, 0);
		return;
	case SESSION_OPEN:
	case SESSION_CLOSES:
		return;
	}
}

/* A call that has not started is no error: the server had not read it yet, and gives it a new interpreter. */
static bool session_lose_context(struct session *s, int32_t number)
{
	struct session_context *c = number >= 0 && number < SESSION_CONTEXTS_MAX ? &s->context[number] : NULL;

	if (!c || !c->is_there || (c->call && c->call->clock.started > 0))
		return false;
	c->is_there = false;
	c->was_lost = true;
	return true;
}

static bool session_handle_message(struct session *s, const struct session_message *message, int *fds, size_t n)
{
	switch ((enum session_message_kind)message->kind) {
	case SESSION_READY:
		if (n || s->was_ready)
			return false; /* once: a flood would keep the server from other work */
		s->was_ready = true;
		session_open_after_both_reports(s, SESSION_AWAITS_SET_UP);
		return true;
	case SESSION_LOST:
		return n == 0 && session_lose_context(s, message->value);
	case SESSION_BACKGROUND:
		if (n || message->value < 0 || message->value > SESSION_BACKGROUND_MAX || !s->background_messages)
			return false;
		s->background_messages--;
		s->background = message->value;
		session_set_timer(s);
		return true;
	case SESSION_STARTED:
	case SESSION_ENDED:
	case SESSION_FAILED:
	case SESSION_CPU:
		return session_call_handle_message(s, message, fds, n);
	}
	return false;
}

static void session_close_socket(struct session *s)
{
	if (s->source.fd >= 0)
		loop_remove(&s->run->server->loop, &s->source);
	fd_closep(&s->source.fd);
}

static void session_on_server_message(void *owner)
{
	struct session        *s = owner;
	struct session_message message;
	int                    fds[SESSION_FDS_MAX];
	size_t                 n   = 0;
	ssize_t                got;
	bool                   is_good;

	session_calls_send_terminal_sizes(s);
	got = packet_receive(s->source.fd, &message, sizeof message, fds, ARRAY_LEN(fds), &n);
	if (got < 0 && errno == EAGAIN)
		return;
	if (got == 0) { /* the server has ended, or is about to: the end of the run shows how */
		session_close_socket(s);
		return;
	}
	is_good = got == sizeof message && session_handle_message(s, &message, fds, n);
	packet_close_fds(fds, got < 0 ? 0 : n);
	if (is_good)
		return;
	/* The jail is not trusted: an invalid message ends the session. */
	snprintf(s->why, sizeof s->why,
		 "its session server, which is in the jail, sent an invalid message: a program has taken it over");
	session_close_socket(s);
	run_request_cancel(&s->run->run, EXIT_cancelled);
}

/* --- life --- */

struct session *session_new(struct served_run *run, const struct protocol_request *request)
{
	struct session *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->run    = run;
	s->limits = run->limits;
	s->stays  = request->stays;
	s->terminal = request->terminal;
	s->source = (struct loop_source){ -1, session_on_server_message, s };
	s->timer  = (struct loop_timer){ .due = session_on_timer, .owner = s };
	s->set_up  = RUN_RESULT_NONE;
	s->opened_ms = s->used_ms = clock_ms(CLOCK_MONOTONIC);
	TAILQ_INIT(&s->calls);
	if (request->name)
		snprintf(s->name, sizeof s->name, "%s", request->name);
	TAILQ_INSERT_TAIL(&run->server->sessions, s, link);
	return s;
}

void session_free(struct session *s)
{
	struct server *d = s->run->server;

	loop_timer_clear(&d->loop, &s->timer);
	session_close_socket(s);
	TAILQ_REMOVE(&d->sessions, s, link);
	free(s);
}

void session_on_run_started(struct session *s, int sock)
{
	struct err e;

	s->source.fd = sock;
	if (loop_add(&s->run->server->loop, &s->source, &e) == 0)
		return;
	fd_closep(&s->source.fd);
	run_request_cancel(&s->run->run, EXIT_cancelled);
}

void session_on_run_set_up(struct session *s, const struct run_result *set_up, uint32_t victims)
{
	s->set_up   = *set_up;
	s->victims = victims;
	session_open_after_both_reports(s, SESSION_AWAITS_SERVER);
}

static const char *session_record_gone(struct session *s, enum exit_reason reason)
{
	struct server       *d   = s->run->server;
	struct session_gone *row = &d->gone[d->gone_next++ % SESSION_GONE_MAX];

	snprintf(row->id, sizeof row->id, "%s", s->run->id);
	snprintf(row->name, sizeof row->name, "%s", s->name);
	row->uid = s->run->peer.uid;
	if (*s->why)
		snprintf(row->why, sizeof row->why, "%s", s->why);
	else if (reason == EXIT_oom)
		snprintf(row->why, sizeof row->why, "its memory was used up");
	else if (reason == EXIT_client_gone)
		snprintf(row->why, sizeof row->why, "the client that opened it is gone");
	else
		snprintf(row->why, sizeof row->why, "it was %s",
			 reason == EXIT_cancelled ? "cancelled" : "ended by something in it");
	return row->why;
}

const char *session_on_run_ended(struct session *s, enum exit_reason reason)
{
	struct session_call *call;
	const char          *why;

	while ((call = TAILQ_FIRST(&s->calls)))
		session_call_end_and_free(call, reason == EXIT_oom ? EXIT_oom : EXIT_cancelled);
	why = session_record_gone(s, reason);
	session_free(s);
	return why;
}

void session_request_close(struct session *s, const char *why)
{
	if (s->state == SESSION_CLOSES)
		return;
	snprintf(s->why, sizeof s->why, "%s", why);
	if (s->state < SESSION_OPEN || session_send_message(s, json_pack("{ss}", "op", "end"), NULL, 0) < 0)
		run_request_cancel(&s->run->run, EXIT_cancelled);
	s->state = SESSION_CLOSES;
	loop_timer_set(&s->run->server->loop, &s->timer, CLOSE_MS_MAX);
}

/* --- finding sessions --- */

static bool session_has_id_or_name(const struct session *s, const char *id_or_name, uid_t uid)
{
	if (strcmp(s->run->id, id_or_name) == 0)
		return peer_is_shown_to(&s->run->peer, uid);
	return s->run->peer.uid == uid && *s->name && strcmp(s->name, id_or_name) == 0;
}

static const char *find_end_of_gone_session(const struct server *d, const char *id_or_name, uid_t uid)
{
	for (unsigned i = 1; i <= SESSION_GONE_MAX; i++) {
		const struct session_gone *row = &d->gone[(d->gone_next - i) % SESSION_GONE_MAX];

		if (row->uid == uid && *row->id &&
		    (strcmp(row->id, id_or_name) == 0 || (*row->name && strcmp(row->name, id_or_name) == 0)))
			return row->why;
	}
	return NULL;
}

struct session *session_find_open_or_deny(const struct server *d, const char *id_or_name, uid_t uid, struct denial *why)
{
	const char     *gone;
	struct session *s, *other = NULL; /* the newest of those that take no calls */

	TAILQ_FOREACH(s, &d->sessions, link)
		if (session_has_id_or_name(s, id_or_name, uid)) {
			if (s->state == SESSION_OPEN)
				return s;
			other = s;
		}
	if (other) {
		deny(why, DENIAL_not_found, "session", "session %.64s is %s", id_or_name,
		     other->state < SESSION_OPEN ? "not open yet" : "being closed");
		snprintf(why->reason, sizeof why->reason, "%s", other->why);
		return NULL;
	}
	gone = find_end_of_gone_session(d, id_or_name, uid);
	if (!gone) {
		deny(why, DENIAL_not_found, "session", "you have no session \"%.64s\"", id_or_name);
		return NULL;
	}
	deny(why, DENIAL_not_found, "session", "session %.64s has ended: %s", id_or_name, gone);
	snprintf(why->reason, sizeof why->reason, "%s", gone);
	return NULL;
}

/* A session that is being closed does not count: its client may open the next one at once. */
bool session_name_is_taken(const struct server *d, const char *name, uid_t uid)
{
	const struct session *s;

	TAILQ_FOREACH(s, &d->sessions, link)
		if (s->state != SESSION_CLOSES && s->run->peer.uid == uid && strcmp(s->name, name) == 0)
			return true;
	return false;
}

static json_t *session_to_json(const struct session *s, const struct connection *c, double now)
{
	const struct session_call *call;
	json_t                    *running = json_array(), *contexts = json_array();

	TAILQ_FOREACH(call, &s->calls, link)
		json_array_append_new(running, json_string(call->id));
	for (size_t i = 0; i < SESSION_CONTEXTS_MAX; i++)
		if (s->context[i].is_there)
			json_array_append_new(contexts, json_string(s->context[i].name));
	return json_pack("{ss ss? ss sI sI sI sI sI sb sI so so sb sb}", "session", s->run->id,
			 "name", *s->name ? s->name : NULL, "profile", s->run->profile->name,
			 "uid", (json_int_t)s->run->peer.uid,
			 "age_ms", (json_int_t)(now - s->run->asked_ms),
			 "idle_ms", (json_int_t)(s->calls_len ? 0 : now - s->used_ms),
			 "idle_left_ms", (json_int_t)session_idle_left(s, now),
			 "lifetime_left_ms", (json_int_t)session_lifetime_left(s, now),
			 "stays", s->stays, "calls", (json_int_t)s->calls_made, "running", running,
			 "contexts", contexts, "mine", s->run->peer.uid == c->peer.uid,
			 "frozen", s->run->run.is_frozen);
}

json_t *sessions_to_json(const struct server *d, const struct connection *c)
{
	json_t               *list  = json_array();
	size_t                bytes = 0;
	double                now   = clock_ms(CLOCK_MONOTONIC);
	const struct session *s;

	TAILQ_FOREACH(s, &d->sessions, link) {
		json_t *one = NULL;

		if (s->state == SESSION_OPEN && peer_is_shown_to(&s->run->peer, c->peer.uid) &&
		    json_array_size(list) < PROTOCOL_SESSIONS_MAX)
			one = session_to_json(s, c, now);
		bytes += one ? json_dumpb(one, NULL, 0, JSON_COMPACT) + 1 : 0;
		if (one && bytes <= SESSION_LIST_BYTES)
			json_array_append(list, one);
		json_decref(one);
	}
	return list;
}
