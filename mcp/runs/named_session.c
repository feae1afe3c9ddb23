#include "named_session.h"

#include "ask_hosts.h"
#include "choice.h"
#include "denial.h"
#include "fd.h"
#include "member.h"
#include "metrics.h"
#include "run_request.h"
#include "server_request.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { END_MS_MAX = 1000 }; /* how long to wait for the end of a session that brigd closes */
enum { LOST_KEPT = 256 }; /* lost sessions that no reply has reported; beyond it the oldest is forgotten */

/* --- its life --- */

static void session_free(struct named_session *s)
{
	run_client_done(&s->run);
	loop_timer_clear(&s->mcp->loop, &s->pump);
	loop_timer_clear(&s->mcp->loop, &s->late_end);
	TAILQ_REMOVE(&s->mcp->sessions->all, s, link);
	for (size_t i = 0; i < ARRAY_LEN(s->ro_fd); i++)
		fd_closep(&s->ro_fd[i]);
	json_decref(s->asked);
	json_decref(s->message);
	free(s);
}

static void session_pump_soon(struct named_session *s)
{
	loop_timer_set(&s->mcp->loop, &s->pump, 0);
}

bool named_session_is_over(const struct named_session *s)
{
	return s->state == SESSION_ABANDONED || s->state == SESSION_OVER;
}

/* --- its uses --- */

static void session_remove_use(struct named_session *s, struct session_use *u)
{
	TAILQ_REMOVE(&s->uses, u, link);
	if (s->running == u)
		s->running = NULL;
	u->session  = NULL;
	u->is_ready = false;
}

static struct session_use *session_oldest_waiting(const struct named_session *s, bool calls_too)
{
	struct session_use *u;

	TAILQ_FOREACH(u, &s->uses, link)
		if (!u->is_ready && (calls_too || !u->is_call))
			break;
	return u;
}

static void session_refuse_waiting(struct named_session *s, bool calls_too)
{
	struct session_use *u;

	while ((u = session_oldest_waiting(
			s, calls_too))) { /* searched again each time: refused() may remove other uses */
		session_remove_use(s, u);
		u->events->refused(u->owner, &s->failed);
	}
}

/* ready() and refused() may leave and enter the session, and end it. */
static void session_pump(void *owner)
{
	struct named_session *s = owner;
	struct session_use   *u;

	switch (s->state) {
	case SESSION_CLOSED:
	case SESSION_ABANDONED:
	case SESSION_OVER:
		session_refuse_waiting(s, true);
		if (!TAILQ_EMPTY(&s->uses) || s->run.question.tag || (s->state == SESSION_CLOSED && *s->lost))
			return;
		session_free(s);
		return;
	case SESSION_OPEN:
		u = session_oldest_waiting(s, !s->running);
		if (!u)
			return;
		session_pump_soon(s); /* for the next one */
		u->is_ready = true;
		if (u->is_call)
			s->running = u;
		u->events->ready(u->owner);
		return;
	case SESSION_OPENS:
	case SESSION_VANISHES:
		return;
	}
}

/* --- its end --- */

static void named_session_fail(struct named_session *s, const char *code, const char *field, const char *text)
{
	run_client_close(&s->run);
	s->state = named_session_is_over(s) ? SESSION_OVER : SESSION_CLOSED;
	failure_set(&s->failed, code, field, text);
	session_pump_soon(s);
}

static void session_open(struct named_session *s)
{
	struct err e;

	s->state = SESSION_OPENS;
	if (run_client_start_request(&s->run, s->message, s->ro_fd, s->ro_fds, &e) < 0)
		named_session_fail(s, e.kind == ERR_MISSING ? "missing" : "unavailable", NULL, e.text);
}

/* An open one has ended. */
static void named_session_on_lost(struct named_session *s, const char *reason)
{
	loop_timer_clear(&s->mcp->loop, &s->late_end);
	metrics_session_ended(s->mcp->metrics);
	*s->id     = 0;
	s->lost_ms = loop_now_ms();
	snprintf(s->lost, sizeof s->lost, "%s", *reason ? reason : "brigd has ended it");
	named_session_fail(s, "not_found", "session", s->lost);
	if (s->state == SESSION_OVER)
		return;
	session_refuse_waiting(s, false);
	if (session_oldest_waiting(s, true))
		session_open(s);
}

static void session_on_late_end(void *owner)
{
	named_session_on_lost(owner, "");
}

/* Its end is on its way, with the reason. */
void named_session_set_gone(struct named_session *s, const char *id)
{
	if ((s->state != SESSION_OPEN && s->state != SESSION_OVER) || strcmp(s->id, id) != 0)
		return;
	if (s->state == SESSION_OPEN)
		s->state = SESSION_VANISHES;
	loop_timer_set(&s->mcp->loop, &s->late_end, END_MS_MAX);
}

static void session_send_close(struct named_session *s)
{
	brigd_link_send(s->mcp->brigd_link, json_pack("{ss ss}", "op", "close", "session", s->id));
}

void named_session_request_close(struct named_session *s)
{
	if (s->state == SESSION_OPEN)
		session_send_close(s);
	s->state = s->state == SESSION_OPENS || s->state == SESSION_ABANDONED ? SESSION_ABANDONED : SESSION_OVER;
	failure_set(&s->failed, "cancelled", "session", "it was ended while this call waited for its turn");
	session_refuse_waiting(s, true);
	session_pump_soon(s);
}

/* --- messages of brigd --- */

static void session_on_opened(void *owner, const json_t *event)
{
	struct named_session *s = owner;

	if (s->state != SESSION_OPENS && s->state != SESSION_ABANDONED)
		return;
	snprintf(s->id, sizeof s->id, "%s", json_string_value(json_object_get(event, "session")));
	metrics_session_opened(s->mcp->metrics);
	if (s->state == SESSION_ABANDONED)
		session_send_close(s);
	s->state = s->state == SESSION_ABANDONED ? SESSION_OVER : SESSION_OPEN;
	session_pump_soon(s);
}

/* A session that ends before it is open could not be built. */
static void session_on_ended(void *owner, const json_t *event)
{
	struct named_session *s      = owner;
	const json_t         *record = json_object_get(event, "record");
	const char           *words  = member_text(json_object_get(record, "error"), "message"),
		   *why              = member_text(record, "session_end");

	if (*s->id)
		named_session_on_lost(s, *why ? why : words);
	else
		named_session_fail(s, "unavailable", NULL, *words ? words : "The session could not be opened");
}

/*
 * An error of brigd names a variable by its index in a list that the client never saw, "env[0]": the client gets its
 * name.
 */
static void session_on_refused(void *owner, const json_t *answer)
{
	struct named_session *s     = owner;
	const json_t         *error = json_object_get(answer, "error");
	const char           *code = member_text(error, "code"), *field = member_text(error, "field"), *variable = NULL;
	char                  words[600];
	size_t                i;

	if (*s->id || s->state == SESSION_CLOSED)
		return;
	metrics_count_refused(s->mcp->metrics, code);
	if (strcmp(code, denial_code_name(DENIAL_unknown_request)) == 0) {
		named_session_fail(
			s, "denied", "session",
			"there are none here: the brigd that serves is of an older release; leave the argument out");
		return;
	}
	if (denial_parse_index(field, "env", &i))
		variable = json_string_value(json_array_get(json_object_get(s->message, "env"), i));
	if (!variable) {
		named_session_fail(s, code, field, member_text(error, "message"));
		return;
	}
	snprintf(words, sizeof words, "%.*s: %s", (int)strcspn(variable, "="), variable, member_text(error, "message"));
	text_make_plain(words);
	named_session_fail(s, code, "env", words);
}

static void session_on_disconnect(void *owner, const struct err *why)
{
	struct named_session *s = owner;

	if (*s->id)
		named_session_on_lost(s, "brigd was restarted");
	else
		named_session_fail(s, why->kind == ERR_MISSING ? "missing" : "lost", NULL, why->text);
}

static const struct run_events events_of_session = {
	.opened  = session_on_opened,
	.ended   = session_on_ended,
	.refused = session_on_refused,
	.lost    = session_on_disconnect,
};

void named_session_enter(struct named_session *s, struct session_use *u)
{
	u->session  = s;
	u->is_ready = false;
	TAILQ_INSERT_TAIL(&s->uses, u, link);
	if (s->state == SESSION_CLOSED)
		session_open(s);
	session_pump_soon(s);
}

void named_session_leave(struct session_use *u)
{
	struct named_session *s = u->session;

	if (!s)
		return;
	session_remove_use(s, u);
	session_pump_soon(s); /* the next use is ready, or the session is freed */
}

/* --- all of them --- */

struct named_sessions *named_sessions_create(struct mcp *m)
{
	struct named_sessions *all = calloc(1, sizeof *all);

	if (!all)
		return NULL;
	all->mcp = m;
	TAILQ_INIT(&all->all);
	return all;
}

void named_sessions_destroy(struct named_sessions *all)
{
	struct named_session *s;

	while (all && (s = TAILQ_FIRST(&all->all)))
		session_free(s);
	free(all);
}

bool named_sessions_are_offered(const struct settings *s)
{
	return s->sessions > 0;
}

/* A session of the owner that is not over; name: NULL: any. */
static struct named_session *named_session_find_live(struct mcp *m, const char *owner, const char *name)
{
	struct named_session *s;

	TAILQ_FOREACH(s, &m->sessions->all, link)
		if (!named_session_is_over(s) && strcmp(s->owner, owner) == 0 && (!name || strcmp(s->name, name) == 0))
			break;
	return s;
}

/* Each search begins at the first one, as the end of one may end others. */
void named_sessions_request_close_all(struct mcp *m, const char *owner)
{
	struct named_session *s;

	while ((s = named_session_find_live(m, owner, NULL)))
		named_session_request_close(s);
}

static const char *session_owner_of(const struct call *c)
{
	return *c->channel->owner ? c->channel->owner : c->channel->principal;
}

/* The names of the owner's open sessions, "a, b", cut to fit into len bytes. */
static void print_open_sessions(const struct call *c, char *buf, size_t len)
{
	const struct named_session *s;
	size_t                      at = 0;

	*buf = 0;
	TAILQ_FOREACH(s, &c->mcp->sessions->all, link)
	if (!named_session_is_over(s) && s->state != SESSION_CLOSED && strcmp(s->owner, session_owner_of(c)) == 0 &&
	    at + strlen(s->name) + 3 < len)
		at += (size_t)snprintf(buf + at, len - at, "%s%s", at ? ", " : "", s->name);
}

/* --- the argument session of a call --- */

const char *named_session_parse_argument(const json_t *arguments, struct err *e)
{
	const char *name = member_text(arguments, SESSION_ARGUMENT);

	if (!*name || protocol_is_name(name))
		return name;
	err_set(e, ERR_BAD_SPEC,
		"session: \"%.70s\" is no name; use 1 to %d letters, digits, dots, dashes and underscores", name,
		PROTOCOL_NAME_MAX);
	return NULL;
}

struct named_session *named_session_find(const struct call *c, const char *name)
{
	return named_session_find_live(c->mcp, session_owner_of(c), name);
}

struct named_session *named_session_find_open(const struct call *c, const char *name, struct err *e)
{
	struct named_session *s = *name ? named_session_find(c, name) : NULL;
	char                  names[200];

	if (s && s->state != SESSION_CLOSED)
		return s;
	print_open_sessions(c, names, sizeof names);
	if (s)
		err_set(e, ERR_BAD_SPEC, "session: \"%s\" is lost, with its variables and files: %.300s", name,
			s->lost);
	else
		err_set(e, ERR_BAD_SPEC, "session: there is no \"%s\"; execute_code makes one%s%s", name,
			*names ? "; there are: " : "", names);
	return NULL;
}

/* Arguments that belong to the session, not to one call. */
static const char *const session_keys[] = { "profile", "memory_limit", "env" };

/* null, "" and {} are not given. */
static json_t *session_keys_given(const json_t *arguments)
{
	json_t *asked = json_object();

	for (size_t i = 0; i < ARRAY_LEN(session_keys); i++) {
		const json_t *value = json_object_get(arguments, session_keys[i]);

		if (json_string_length(value) || json_object_size(value) || json_is_number(value))
			json_object_set(asked, session_keys[i], (json_t *)value);
	}
	return asked;
}

/* An open session keeps its profile: a call with another one is refused. */
static int session_check_profile(const struct named_session *s, const json_t *given, struct err *e)
{
	const json_t *profile = json_object_get(given, "profile"), *own = json_object_get(s->asked, "profile");

	if (!profile || json_equal(profile, own))
		return 0;
	return err_set(e, ERR_BAD_SPEC,
		       "profile: session \"%s\" has %s; use another session, or end it first with end_session", s->name,
		       json_string_value(own));
}

/* Warns of arguments that differ from those of an open session, which no call changes. */
static void session_warn_of_changes(const struct named_session *s, const json_t *given, json_t *warnings)
{
	for (size_t i = 0; i < ARRAY_LEN(session_keys); i++) {
		const json_t *value = json_object_get(given, session_keys[i]);

		if (value && !json_equal(value, json_object_get(s->asked, session_keys[i])))
			json_array_append_new(warnings,
					      json_sprintf("%s was ignored: session '%s' has it from its first call",
							   session_keys[i], s->name));
	}
}

json_t *named_session_merge_asked(const struct call *c, const char *name, const json_t *arguments, json_t *warnings,
			    struct err *e)
{
	const struct named_session *s     = named_session_find(c, name);
	json_t                     *asked = session_keys_given(arguments);
	int                         r;

	if (s && s->asked && s->state != SESSION_CLOSED) {
		r = session_check_profile(s, asked, e);
		if (r == 0)
			session_warn_of_changes(s, asked, warnings);
		json_decref(asked);
		return r < 0 ? NULL : json_incref(s->asked);
	}
	if (s && s->asked)
		json_object_update_missing(asked, s->asked);
	if (!json_object_get(asked, "profile"))
		json_object_set_new(asked, "profile", json_string(choice_default_profile(c->mcp->settings)));
	return asked;
}

/*
 * Clients that cannot be told apart would share "main" by accident: a new session of theirs has a name that no other
 * chooses, "main-8c1f52".
 */
static int session_check_new_name(const struct call *c, const char *name, struct err *e)
{
	enum { RANDOM_DIGITS = 6 };
	const char *dash = strrchr(name, '-');
	size_t      n    = dash ? strlen(dash + 1) : 0;
	char        digits[RANDOM_DIGITS + 1];

	if (!c->channel->shares || (n >= RANDOM_DIGITS && strspn(dash + 1, "0123456789abcdef") == n) ||
	    named_session_find(c, name))
		return 0;
	client_request_make_secret(digits, sizeof digits);
	return err_set(e, ERR_BAD_SPEC,
		       "session: another client with this token could choose \"%s\", too; use \"%.50s-%s\", in this "
		       "call and in later ones",
		       name, name, digits);
}

/*
 * One more may be open. Forgets the oldest lost session if there are too many of these, but not the one called `but`.
 */
static int sessions_check_limit(const struct call *c, const struct named_session *but, struct err *e)
{
	struct named_session *s, *oldest = NULL;
	size_t                open = 0, lost = 0;
	char                  names[200];

	TAILQ_FOREACH(s, &c->mcp->sessions->all, link) {
		bool is_lost = s->state == SESSION_CLOSED && TAILQ_EMPTY(&s->uses);

		open += !is_lost;
		lost += is_lost;
		if (is_lost && (!oldest || s->lost_ms < oldest->lost_ms))
			oldest = s;
	}
	if (lost > LOST_KEPT && oldest != but)
		session_free(oldest);
	if (open < c->mcp->settings->sessions)
		return 0;
	print_open_sessions(c, names, sizeof names);
	return err_set(e, ERR_DENIED, "session: %zu are open, which is the most here; end one with end_session%s%s",
		       open, *names ? ": " : ", or try again later", names);
}

/* A closed session, which the pump frees unless it is used by then. */
static struct named_session *session_create(const struct call *c, const char *name)
{
	struct named_session *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->mcp      = c->mcp;
	s->pump     = (struct loop_timer){ .due = session_pump, .owner = s };
	s->late_end = (struct loop_timer){ .due = session_on_late_end, .owner = s };
	run_client_init(&s->run, c->mcp->brigd_link, -1, &events_of_session, s);
	for (size_t i = 0; i < ARRAY_LEN(s->ro_fd); i++)
		s->ro_fd[i] = -1;
	snprintf(s->owner, sizeof s->owner, "%s", session_owner_of(c));
	snprintf(s->name, sizeof s->name, "%s", name);
	TAILQ_INIT(&s->uses);
	TAILQ_INSERT_TAIL(&c->mcp->sessions->all, s, link);
	session_pump_soon(s);
	return s;
}

/* Sets what a closed session is opened with. Takes both over. */
static void session_set_request(struct named_session *s, json_t *asked, json_t *message)
{
	struct err ignored;

	json_decref(s->asked);
	json_decref(s->message);
	s->asked   = asked;
	s->message = message;
	s->ro_fds  = 0;
	for (size_t i = 0; i < ARRAY_LEN(s->ro_fd); i++)
		fd_closep(&s->ro_fd[i]);
	if (ro_folders_dup_fds(&s->mcp->shown, s->ro_fd, &ignored) < 0)
		return; /* the session then has none of these folders */
	ro_folders_put_into_request(&s->mcp->shown, message);
	s->ro_fds = s->mcp->shown.n;
}

struct named_session *named_session_make(const struct call *c, const char *name, const json_t *asked,
					 const json_t *explained, json_t *warnings, struct err *e)
{
	struct named_session *s = named_session_find(c, name);
	json_t               *message;

	if (s && s->state != SESSION_CLOSED) /* perhaps another call has made it meanwhile */
		return session_check_profile(s, asked, e) < 0 ? NULL : s;
	if (session_check_new_name(c, name, e) < 0 || sessions_check_limit(c, s, e) < 0)
		return NULL;
	message = run_request_make_open(c->mcp->settings, asked, explained, warnings, e);
	if (!message)
		return NULL;
	if (!s)
		s = session_create(c, name);
	if (!s) {
		json_decref(message);
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	hosts_put_into_request(c->mcp, message, explained);
	session_set_request(s, json_incref((json_t *)asked), message);
	return s;
}
