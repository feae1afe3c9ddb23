#include "client_protocol.h"

#include "shape.h"

#include <string.h>

/* --- what answers look like --- */

/* clang-format off */
#define SHAPE_TAG { "tag", SHAPE_COUNT, SHAPE_MAY, "The request's, if it had one", NULL }
#define SHAPE_RUN { "run", SHAPE_TEXT, SHAPE_MUST, "The id of the run", NULL }

static const struct shape quota_shape[] = {
	{ "runs",            SHAPE_COUNT, SHAPE_NULL, "Runs at once", NULL },
	{ "memory_bytes",    SHAPE_COUNT, SHAPE_NULL, "Memory limits of all runs together", NULL },
	{ "runs_per_minute", SHAPE_COUNT, SHAPE_NULL, "Runs started and calls made within a minute", NULL },
	{ "sessions",        SHAPE_COUNT, SHAPE_NULL, "Sessions at once, which are among the runs", NULL },
	{ "contexts",        SHAPE_COUNT, SHAPE_NULL, "Contexts at once in one session", NULL },
	{ 0 },
};
static const struct shape named_shape[] = {
	{ "name",        SHAPE_TEXT, SHAPE_MUST, "Its name", NULL },
	{ "description", SHAPE_TEXT, SHAPE_MUST, "One line for people", NULL },
	{ 0 },
};
static const struct shape hello_shape[] = {
	{ "reply",    SHAPE_TEXT,  SHAPE_MUST, "\"hello\"", NULL },
	SHAPE_TAG,
	{ "version",  SHAPE_COUNT, SHAPE_MUST, "The protocol that the service speaks", NULL },
	{ "brig",     SHAPE_TEXT,  SHAPE_MUST, "The version of the service", NULL },
	{ "features", SHAPE_TEXTS, SHAPE_MUST, "Names of additions to version 1, see VERSIONS", NULL },
	{ "profiles", SHAPE_ROWS,  SHAPE_MUST, "The profiles that this user may use", named_shape },
	{ "quota",    SHAPE_TABLE, SHAPE_MUST, "What this user may use; null is without limit", quota_shape },
	{ 0 },
};
static const struct shape cancel_shape[] = {
	{ "reply", SHAPE_TEXT, SHAPE_MUST, "\"cancel\"; the event ended comes later, on the connection that started the run", NULL },
	SHAPE_TAG, SHAPE_RUN,
	{ 0 },
};
#define SHAPE_SESSION { "session", SHAPE_TEXT, SHAPE_MUST, "The id of the session", NULL }
static const struct shape files_shape[] = {
	{ "reply", SHAPE_TEXT, SHAPE_MUST, "\"files\"; a socket comes with it, see FILES", NULL },
	SHAPE_TAG, SHAPE_SESSION,
	{ 0 },
};
static const struct shape interrupt_shape[] = {
	{ "reply", SHAPE_TEXT, SHAPE_MUST, "\"interrupt\"; the event ended comes when the call has ended", NULL },
	SHAPE_TAG, SHAPE_RUN,
	{ 0 },
};
static const struct shape resize_shape[] = {
	{ "reply", SHAPE_TEXT, SHAPE_MUST, "\"resize\"", NULL },
	SHAPE_TAG, SHAPE_RUN,
	{ 0 },
};
static const struct shape restart_shape[] = {
	{ "reply",   SHAPE_TEXT, SHAPE_MUST, "\"restart\"", NULL },
	SHAPE_TAG, SHAPE_SESSION,
	{ "context", SHAPE_TEXT, SHAPE_MUST, "The name of the context", NULL },
	{ 0 },
};
static const struct shape renew_shape[] = {
	{ "reply", SHAPE_TEXT, SHAPE_MUST, "\"renew\"", NULL },
	SHAPE_TAG, SHAPE_SESSION,
	{ "lifetime_ms", SHAPE_COUNT, SHAPE_MUST, "So long after it was opened it is closed in any case", NULL },
	{ 0 },
};
static const struct shape close_shape[] = {
	{ "reply", SHAPE_TEXT, SHAPE_MUST, "\"close\"; the event ended comes later, on the connection that opened the session", NULL },
	SHAPE_TAG, SHAPE_SESSION,
	{ 0 },
};
static const struct shape tools_shape[] = {
	{ "reply", SHAPE_TEXT, SHAPE_MUST, "\"tools\"", NULL },
	SHAPE_TAG, SHAPE_RUN,
	{ 0 },
};
static const struct shape listed_shape[] = {
	SHAPE_RUN,
	{ "profile", SHAPE_TEXT,  SHAPE_MUST, "Its profile", NULL },
	{ "uid",     SHAPE_COUNT, SHAPE_MUST, "The id of its user", NULL },
	{ "pid",     SHAPE_COUNT, SHAPE_MUST, "The process that asked for it", NULL },
	{ "comm",    SHAPE_TEXT,  SHAPE_MUST, "The name of that process", NULL },
	{ "program", SHAPE_TEXT,  SHAPE_MAY,  "The beginning of what runs: a command, a session, or the first line of a program; see VERSIONS", NULL },
	{ "state",   SHAPE_TEXT,  SHAPE_MUST, "starting or running", NULL },
	{ "age_ms",  SHAPE_COUNT, SHAPE_MUST, "Milliseconds since the request", NULL },
	{ "mine",    SHAPE_BOOL,  SHAPE_MUST, "Whether it belongs to the user who asks", NULL },
	{ 0 },
};
static const struct shape listed_session_shape[] = {
	SHAPE_SESSION,
	{ "name",             SHAPE_TEXT,  SHAPE_NULL, "Its name, if it has one", NULL },
	{ "profile",          SHAPE_TEXT,  SHAPE_MUST, "Its profile", NULL },
	{ "uid",              SHAPE_COUNT, SHAPE_MUST, "The id of its user", NULL },
	{ "age_ms",           SHAPE_COUNT, SHAPE_MUST, "Milliseconds since it was asked for", NULL },
	{ "idle_ms",          SHAPE_COUNT, SHAPE_MUST, "Milliseconds since its last call ended; 0 while one is under way", NULL },
	{ "idle_left_ms",     SHAPE_COUNT, SHAPE_MUST, "Milliseconds until it is closed, if there is no call", NULL },
	{ "lifetime_left_ms", SHAPE_COUNT, SHAPE_MUST, "Milliseconds until it is closed in any case", NULL },
	{ "stays",            SHAPE_BOOL,  SHAPE_MUST, "Whether it outlives the connection that opened it", NULL },
	{ "calls",            SHAPE_COUNT, SHAPE_MUST, "Calls that were made in it", NULL },
	{ "running",          SHAPE_TEXTS, SHAPE_MUST, "The ids of calls under way", NULL },
	{ "contexts",         SHAPE_TEXTS, SHAPE_MUST, "Names of its interpreters", NULL },
	{ "mine",             SHAPE_BOOL,  SHAPE_MUST, "Whether it belongs to the user who asks", NULL },
	{ "frozen",           SHAPE_BOOL,  SHAPE_MAY,  "Whether its processes are frozen until the next call", NULL },
	{ 0 },
};
static const struct shape list_shape[] = {
	{ "reply",    SHAPE_TEXT,  SHAPE_MUST, "\"list\"", NULL },
	SHAPE_TAG,
	{ "runs",     SHAPE_ROWS,  SHAPE_MUST, "The oldest first, at most 200", listed_shape },
	{ "left_out", SHAPE_COUNT, SHAPE_MUST, "How many more runs there are", NULL },
	{ "sessions", SHAPE_ROWS,  SHAPE_MAY,  "Open sessions, the oldest first, at most 100, and as many as fit into 16 KiB", listed_session_shape },
	{ 0 },
};
static const struct shape run_counts_shape[] = {
	{ "started", SHAPE_COUNT,  SHAPE_MUST, "Requests that became a run", NULL },
	{ "ended",   SHAPE_COUNTS, SHAPE_MUST, "How runs ended: exit reasons, and how often", NULL },
	{ 0 },
};
static const struct shape zygote_shape[] = {
	{ "state",             SHAPE_TEXT,  SHAPE_MUST, "none, starting, serving, or replaced: it serves until its successor is ready", NULL },
	{ "generation",        SHAPE_COUNT, SHAPE_MUST, "1 for the first zygote of the profile, 2 for the next, and so on", NULL },
	{ "age_ms",            SHAPE_COUNT, SHAPE_NULL, "Milliseconds since it started", NULL },
	{ "runs",              SHAPE_COUNT, SHAPE_NULL, "Cells that were built for it, with those that wait for a run", NULL },
	{ "memory_bytes",      SHAPE_COUNT, SHAPE_NULL, "Its memory; each shared page is divided by the number of processes that map it (PSS)", NULL },
	{ "own_bytes",         SHAPE_COUNT, SHAPE_NULL, "Memory of that which no other process has (USS)", NULL },
	{ "forks",             SHAPE_COUNT, SHAPE_NULL, "Its forks that wait in their cells for a program", NULL },
	{ "fork_memory_bytes", SHAPE_COUNT, SHAPE_NULL, "Memory of one such fork (PSS)", NULL },
	{ "fork_own_bytes",    SHAPE_COUNT, SHAPE_NULL, "Memory of that which no other process has (USS)", NULL },
	{ 0 },
};
static const struct shape profile_counts_shape[] = {
	{ "name",     SHAPE_TEXT,  SHAPE_MUST, "The profile", NULL },
	{ "warm",     SHAPE_TEXT,  SHAPE_MUST, "never, demand or ready, as in the profile", NULL },
	{ "ready",    SHAPE_COUNT, SHAPE_MUST, "Cells that wait for a program", NULL },
	{ "tickets",  SHAPE_COUNT, SHAPE_MAY,  "Of these, cells that runs get at once: the monitor is not asked", NULL },
	{ "building", SHAPE_COUNT, SHAPE_MUST, "Cells that are being built", NULL },
	{ "running",  SHAPE_COUNT, SHAPE_MUST, "Cells with a program", NULL },
	{ "zygote",   SHAPE_TABLE, SHAPE_NULL, "The Python from which its runs are forked; null: each run executes a new one", zygote_shape },
	{ 0 },
};
static const struct shape process_shape[] = {
	{ "pid",          SHAPE_COUNT,  SHAPE_MUST, "Its process id", NULL },
	{ "memory_bytes", SHAPE_COUNT,  SHAPE_NULL, "Its memory", NULL },
	{ "cpu_ms",       SHAPE_NUMBER, SHAPE_NULL, "The CPU time that it used", NULL },
	{ 0 },
};
static const struct shape audit_counts_shape[] = {
	{ "entries",      SHAPE_COUNT, SHAPE_MUST, "Runs that have ended, and refusals", NULL },
	{ "suppressed",   SHAPE_COUNT, SHAPE_MUST, "Refusals and calls of tools that were not written because one user had too many", NULL },
	{ "journal_lost", SHAPE_COUNT, SHAPE_MUST, "Lines that could not be written to the journal", NULL },
	{ "file_lost",    SHAPE_COUNT, SHAPE_MUST, "Lines that could not be written to the file", NULL },
	{ 0 },
};
static const struct shape stats_shape[] = {
	{ "reply",       SHAPE_TEXT,  SHAPE_MUST, "\"stats\"", NULL },
	SHAPE_TAG,
	{ "brig",        SHAPE_TEXT,  SHAPE_MUST, "The version of the service", NULL },
	{ "started_at",  SHAPE_NUMBER, SHAPE_MUST, "When the service started, in seconds since 1970", NULL },
	{ "uptime_ms",   SHAPE_COUNT, SHAPE_MUST, "Milliseconds since then", NULL },
	{ "rules_age_ms", SHAPE_COUNT, SHAPE_MAY, "Milliseconds since configuration and profiles were read", NULL },
	{ "runs",        SHAPE_TABLE, SHAPE_MUST, "Counts since the service started", run_counts_shape },
	{ "running",     SHAPE_COUNT, SHAPE_MUST, "Runs that have not ended", NULL },
	{ "waiting",     SHAPE_COUNT, SHAPE_MUST, "Runs that wait for a place", NULL },
	{ "refused",     SHAPE_COUNTS, SHAPE_MUST, "Requests and clients that were answered with an error: its codes, and how often", NULL },
	{ "tool_calls",  SHAPE_COUNTS, SHAPE_MAY, "Calls of tools by programs that clients have reported: ok, denied, and failed, which is any other end", NULL },
	{ "network",     SHAPE_COUNTS, SHAPE_MAY, "What runs that have ended did with their networks: connections, with those that were refused or failed, and bytes", NULL },
	{ "connections", SHAPE_COUNT, SHAPE_MUST, "Open connections", NULL },
	{ "connected",   SHAPE_COUNT, SHAPE_MUST, "Connections since the service started", NULL },
	{ "audit",       SHAPE_TABLE, SHAPE_NULL, "Counts of the audit's lines; null without an audit", audit_counts_shape },
	{ "profiles",    SHAPE_ROWS,  SHAPE_MUST, "The state of each profile", profile_counts_shape },
	{ "door",        SHAPE_TABLE, SHAPE_MUST, "The process that clients talk to", process_shape },
	{ "keeper",      SHAPE_TABLE, SHAPE_NULL, "The process that starts runs; null when the server does it itself", process_shape },
	{ "confinement", SHAPE_TEXTS, SHAPE_MUST, "The restrictions under which the server runs", NULL },
	{ 0 },
};
static const struct shape histogram_shape[] = {
	{ "sum",     SHAPE_NUMBER, SHAPE_MUST, "The sum of all observations", NULL },
	{ "buckets", SHAPE_COUNTS, SHAPE_MUST, "Upper bounds, the smallest first, each with the number of observations up to it; the last, +Inf, has all", NULL },
	{ 0 },
};
static const struct shape metrics_shape[] = {
	{ "reply",             SHAPE_TEXT,   SHAPE_MUST, "\"metrics\"", NULL },
	SHAPE_TAG,
	{ "profile",           SHAPE_TEXT,   SHAPE_MUST, "Its name", NULL },
	{ "cold",              SHAPE_COUNTS, SHAPE_MUST, "How runs ended that executed a new Python: every exit reason, and how often", NULL },
	{ "warm",              SHAPE_COUNTS, SHAPE_MUST, "The same for runs that were forked from a zygote", NULL },
	{ "wait_seconds",      SHAPE_TABLE,  SHAPE_MUST, "Time from the request to the start, of runs that were started", histogram_shape },
	{ "setup_seconds",     SHAPE_TABLE,  SHAPE_MUST, "setup_ms of all records that have it", histogram_shape },
	{ "wall_seconds",      SHAPE_TABLE,  SHAPE_MUST, "wall_ms of all records that have it", histogram_shape },
	{ "cpu_seconds",       SHAPE_TABLE,  SHAPE_MUST, "cpu_ms of all records that have it", histogram_shape },
	{ "memory_peak_bytes", SHAPE_TABLE,  SHAPE_MUST, "memory_peak_bytes of all records that have it", histogram_shape },
	{ 0 },
};
static const struct shape reload_shape[] = {
	{ "reply",    SHAPE_TEXT,  SHAPE_MUST, "\"reload\"; if a file cannot be used, the answer is an error and nothing changes", NULL },
	SHAPE_TAG,
	{ "profiles", SHAPE_COUNT, SHAPE_MUST, "The number of profiles now", NULL },
	{ "changed",  SHAPE_TEXTS, SHAPE_MUST, "Profiles that are new or have changed", NULL },
	{ "removed",  SHAPE_TEXTS, SHAPE_MUST, "Profiles that are gone", NULL },
	{ "restart",  SHAPE_TEXT,  SHAPE_NULL, "Keys of the configuration that have changed and take effect at the next start", NULL },
	{ 0 },
};
static const struct shape package_shape[] = {
	{ "name",    SHAPE_TEXT, SHAPE_MUST, "The name of a Debian package", NULL },
	{ "version", SHAPE_TEXT, SHAPE_MUST, "Its version", NULL },
	{ 0 },
};
static const struct shape explain_shape[] = {
	{ "reply",         SHAPE_TEXT,   SHAPE_MUST, "\"explain\"", NULL },
	SHAPE_TAG,
	{ "profile",       SHAPE_TEXT,   SHAPE_MUST, "Its name", NULL },
	{ "rootfs",        SHAPE_TEXT,   SHAPE_MUST, "The tree that becomes /", NULL },
	{ "policy",        SHAPE_TEXT,   SHAPE_MUST, "The syscall policy", NULL },
	{ "limits",        SHAPE_OBJECT, SHAPE_MUST, "What a run gets when it asks for nothing, see brig-profile(5)", NULL },
	{ "ceilings",      SHAPE_OBJECT, SHAPE_MUST, "The most that a run may ask for", NULL },
	{ "quota",         SHAPE_TABLE,  SHAPE_MUST, "What this user may use; null is without limit", quota_shape },
	{ "filter_sha256", SHAPE_TEXT,   SHAPE_NULL, "SHA-256 of the compiled filter", NULL },
	{ "network",       SHAPE_OBJECT, SHAPE_MAY,  "Its network, see brig-profile(5): allow, ceiling and deny, and secrets, the name and host of each; absent if the profile sets none", NULL },
	{ "modules",       SHAPE_TEXTS,  SHAPE_NULL, "Modules that brig check accepts; null: any", NULL },
	{ "calls",         SHAPE_TEXTS,  SHAPE_NULL, "Calls that brig check warns about", NULL },
	{ "packages",      SHAPE_ROWS,   SHAPE_MUST, "Packages of the tree when the service started; may be incomplete", package_shape },
	{ 0 },
};
static const struct shape waiting_shape[] = {
	{ "event",   SHAPE_TEXT,  SHAPE_MUST, "\"waiting\"", NULL },
	SHAPE_TAG, SHAPE_RUN,
	{ "why",     SHAPE_TEXT,  SHAPE_MUST, "Which quota is used up", NULL },
	{ 0 },
};
static const struct shape started_shape[] = {
	{ "event",   SHAPE_TEXT,  SHAPE_MUST, "\"started\"", NULL },
	SHAPE_TAG, SHAPE_RUN,
	{ "streams", SHAPE_TEXTS, SHAPE_MUST, "What each descriptor is: stdout, stderr and result are the reading ends of pipes, stdin is a writing end, tools is a socket", NULL },
	{ "output_bytes", SHAPE_COUNT, SHAPE_MUST, "The output limit of each stream, which the client enforces, see STREAMS", NULL },
	{ 0 },
};
static const struct shape opened_shape[] = {
	{ "event",       SHAPE_TEXT,  SHAPE_MUST, "\"opened\"", NULL },
	SHAPE_TAG, SHAPE_RUN, SHAPE_SESSION,
	{ "name",        SHAPE_TEXT,  SHAPE_NULL, "Its name, if it has one", NULL },
	{ "idle_ms",     SHAPE_COUNT, SHAPE_MUST, "After so long without a call it is closed", NULL },
	{ "lifetime_ms", SHAPE_COUNT, SHAPE_MUST, "After so long it is closed in any case", NULL },
	{ 0 },
};
static const struct shape limit_shape[] = {
	{ "event", SHAPE_TEXT,  SHAPE_MUST, "\"limit\"", NULL },
	SHAPE_TAG, SHAPE_RUN,
	{ "name",  SHAPE_TEXT,  SHAPE_MUST, "The limit, as in a profile", NULL },
	{ "value", SHAPE_COUNT, SHAPE_MUST, "Its value", NULL },
	{ "ends",  SHAPE_BOOL,  SHAPE_MUST, "Whether it ends the run", NULL },
	{ 0 },
};
static const struct shape lost_shape[] = {
	{ "layers", SHAPE_TEXTS, SHAPE_MUST, "As in the record's isolation", NULL },
	{ "why",    SHAPE_TEXT,  SHAPE_MUST, "Why this host cannot provide them; may be empty", NULL },
	{ 0 },
};
static const struct shape ended_shape[] = {
	{ "event",      SHAPE_TEXT,   SHAPE_MUST, "\"ended\"", NULL },
	SHAPE_TAG, SHAPE_RUN,
	{ "record",     SHAPE_OBJECT, SHAPE_MUST, "What happened and what it cost, see brig(1)", NULL },
	{ "exec_error", SHAPE_TEXT,   SHAPE_NULL, "Why the program itself could not be executed, like ENOENT", NULL },
	{ "lost",       SHAPE_ROWS,   SHAPE_MUST, "Layers that were not in force, and why", lost_shape },
	{ "left",       SHAPE_TEXT,   SHAPE_NULL, "What could not be cleaned up", NULL },
	{ 0 },
};
static const struct shape inner_error_shape[] = {
	{ "code",           SHAPE_TEXT,  SHAPE_MUST, "One of the codes below", NULL },
	{ "message",        SHAPE_TEXT,  SHAPE_MUST, "A sentence for people, about the field if there is one; it does not name the field", NULL },
	{ "field",          SHAPE_TEXT,  SHAPE_NULL, "The key of the request that it is about, like limits.pids or ro[1]", NULL },
	{ "retry_after_ms", SHAPE_COUNT, SHAPE_MAY,  "After how long to try again", NULL },
	{ "index",          SHAPE_COUNT, SHAPE_MAY,  "If field is an item of a list, which one: 1 for ro[1]; see VERSIONS", NULL },
	{ "reason",         SHAPE_TEXT,  SHAPE_MAY,  "If the request is about a session that ends or has ended: why, in words; see VERSIONS", NULL },
	{ 0 },
};
static const struct shape error_keys[] = {
	{ "error", SHAPE_TABLE, SHAPE_MUST, "Why the request was refused", inner_error_shape },
	SHAPE_TAG,
	{ 0 },
};

static const struct shape *const replies[] = {
#define REQUEST(name, must, descriptors, handler, reply, access, doc) reply,
#include "client_protocol.def"
};
/* clang-format on */

static const struct event_row {
	const char         *name;
	const struct shape *shape;
	const char         *doc;
} events[] = {
#define EVENT(name, doc) { #name, name##_shape, doc },
#include "client_protocol.def"
};

/* --- making answers --- */

static json_t *add_tag(json_t *answer, uint64_t tag)
{
	if (tag != TAG_NONE)
		json_object_set_new(answer, "tag", json_integer((json_int_t)tag));
	return answer;
}

json_t *protocol_reply(enum request_kind to, uint64_t tag)
{
	return add_tag(json_pack("{ss}", "reply", request_name(to)), tag);
}

json_t *protocol_error(const struct denial *d, uint64_t tag)
{
	json_t *inner = json_pack("{ss ss ss?}", "code", denial_code_name(d->code), "message", d->text, "field", *d->field ? d->field : NULL);

	if (d->retry_after_ms)
		json_object_set_new(inner, "retry_after_ms", json_integer((json_int_t)d->retry_after_ms));
	return add_tag(json_pack("{so}", "error", inner), tag);
}

void protocol_error_put_facts(json_t *error, const struct denial *d)
{
	json_t *inner = json_object_get(error, "error");
	size_t  i;

	if (denial_parse_index(d->field, NULL, &i))
		json_object_set_new(inner, "index", json_integer((json_int_t)i));
	if (*d->reason)
		json_object_set_new(inner, "reason", json_string(d->reason));
}

static json_t *new_event(enum event_kind kind, const char *run, uint64_t tag)
{
	return add_tag(json_pack("{ss ss}", "event", events[kind].name, "run", run), tag);
}

json_t *protocol_waiting_event(const char *run, uint64_t tag, const char *why)
{
	json_t *j = new_event(EVENT_waiting, run, tag);

	json_object_set_new(j, "why", json_string(why));
	return j;
}

json_t *protocol_opened_event(const char *session, uint64_t tag, const char *name, uint64_t idle_ms, uint64_t lifetime_ms)
{
	json_t *j = new_event(EVENT_opened, session, tag), *more = json_pack("{ss ss? sI sI}", "session", session, "name", name, "idle_ms", (json_int_t)idle_ms, "lifetime_ms", (json_int_t)lifetime_ms);

	json_object_update_missing(j, more);
	json_decref(more);
	return j;
}

json_t *protocol_limit_event(const char *run, uint64_t tag, const char *name, uint64_t value, bool ends)
{
	json_t *j = new_event(EVENT_limit, run, tag);

	json_object_set_new(j, "name", json_string(name));
	json_object_set_new(j, "value", json_integer((json_int_t)value));
	json_object_set_new(j, "ends", json_boolean(ends));
	return j;
}

/* --- making events as text --- */

static void put_event_head(struct json_text *t, enum event_kind kind, const char *run, uint64_t tag)
{
	json_text_raw(t, "{");
	json_text_key(t, "event");
	json_text_string(t, events[kind].name);
	json_text_key(t, "run");
	json_text_string(t, run);
	if (tag == TAG_NONE)
		return;
	json_text_key(t, "tag");
	json_text_integer(t, (int64_t)tag);
}

void protocol_put_started(struct json_text *t, const char *run, uint64_t tag, bool with_stdin, bool with_result, bool with_tools,
			  uint64_t output_bytes)
{
	put_event_head(t, EVENT_started, run, tag);
	json_text_key(t, "streams");
	json_text_raw(t, "[\"stdout\",\"stderr\"");
	json_text_raw(t, with_stdin ? ",\"stdin\"" : "");
	json_text_raw(t, with_result ? ",\"result\"" : "");
	json_text_raw(t, with_tools ? ",\"tools\"]" : "]");
	json_text_key(t, "output_bytes");
	json_text_integer(t, (int64_t)output_bytes);
	json_text_raw(t, "}");
}

void protocol_put_ended(struct json_text *t, const char *run, uint64_t tag, const char *record, const char *exec_error, const char *lost,
			const char *left)
{
	put_event_head(t, EVENT_ended, run, tag);
	json_text_key(t, "record");
	json_text_raw(t, record);
	json_text_key(t, "exec_error");
	json_text_string(t, exec_error);
	json_text_key(t, "lost");
	json_text_raw(t, lost);
	json_text_key(t, "left");
	json_text_string(t, left);
	json_text_raw(t, "}");
}

/* --- checking answers --- */

static int check_error_answer(const json_t *j, struct err *e)
{
	const char *code;

	if (shape_check(error_keys, j, e) < 0)
		return -1;
	code = json_string_value(json_object_get(json_object_get(j, "error"), "code"));
	for (int i = 0; i < DENIAL_COUNT; i++)
		if (strcmp(denial_code_name((enum denial_code)i), code) == 0)
			return 0;
	return err_set(e, ERR_PROTOCOL, "error: code: \"%.40s\" is not of the list", code);
}

static int check_answer(struct protocol_answer *a, size_t fds, struct err *e)
{
	const char *reply = json_string_value(json_object_get(a->source, "reply"));
	const char *event = json_string_value(json_object_get(a->source, "event"));
	size_t      kind = 0, want = 0;

	a->kind = reply ? ANSWER_REPLY : event ? ANSWER_EVENT : ANSWER_ERROR;
	if (reply) {
		while (kind < ARRAY_LEN(replies) && !(replies[kind] && strcmp(request_name((enum request_kind)kind), reply) == 0))
			kind++;
		if (kind == ARRAY_LEN(replies))
			return err_set(e, ERR_PROTOCOL, "invalid reply \"%.40s\"", reply);
		a->reply = (enum request_kind)kind;
		want     = a->reply == REQUEST_files;
		if (shape_check(replies[kind], a->source, e) < 0)
			return -1;
	} else if (event) {
		while (kind < ARRAY_LEN(events) && strcmp(events[kind].name, event) != 0)
			kind++;
		if (kind == ARRAY_LEN(events))
			return err_set(e, ERR_PROTOCOL, "invalid event \"%.40s\"", event);
		a->event = (enum event_kind)kind;
		if (shape_check(events[kind].shape, a->source, e) < 0)
			return -1;
		want = a->event == EVENT_started ? json_array_size(json_object_get(a->source, "streams")) : 0;
	} else if (check_error_answer(a->source, e) < 0) {
		return -1;
	}
	return fds == want ? 0 : err_set(e, ERR_PROTOCOL, "%zu descriptors came, %zu are wanted", fds, want);
}

int protocol_parse_answer(struct protocol_answer *ret, const void *bytes, size_t len, size_t fds, struct err *e)
{
	scoped_answer a = { 0 };

	if (!(a.source = wire_parse(bytes, len, PROTOCOL_MAX, e)))
		return -1;
	if (check_answer(&a, fds, e) < 0)
		return -1;
	*ret     = a;
	a.source = NULL;
	return 0;
}

void protocol_answer_done(struct protocol_answer *a)
{
	json_decref(a->source);
	a->source = NULL;
}

/* --- for the manual --- */

const struct shape *reply_shape(enum request_kind kind)
{
	return replies[kind];
}

const char *event_name(enum event_kind kind)
{
	return events[kind].name;
}

const char *event_doc(enum event_kind kind)
{
	return events[kind].doc;
}

const struct shape *event_shape(enum event_kind kind)
{
	return events[kind].shape;
}

const struct shape *error_shape(void)
{
	return error_keys;
}
