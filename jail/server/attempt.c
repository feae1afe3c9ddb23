#define _GNU_SOURCE
#include "attempt.h"

#include "audit.h"
#include "clock.h"
#include "session.h"

#include <stdio.h>
#include <string.h>

/* Empty when the limits are invalid: such a request is refused anyway. */
static void parse_asked_limits(struct audit_limits *ret, const json_t *asked)
{
	struct err e;

	*ret = (struct audit_limits){ 0 };
	if (!json_is_object(asked) || fields_decode(limits_fields, asked, &ret->value, &e) < 0)
		return;
	for (unsigned i = 0; i < LIMIT_COUNT; i++)
		if (json_object_get(asked, limits_fields[i].name))
			ret->given |= 1ull << i;
}

void attempt_keep_request(struct attempt *ret, const struct protocol_request *request, const struct program_text *code)
{
	*ret = (struct attempt){ .time_us    = clock_now_us(),
				 .op         = request_name(request->kind),
				 .code_bytes = AUDIT_NONE };
	if (request->principal)
		(void)snprintf(ret->principal, sizeof ret->principal, "%s", request->principal);
	parse_asked_limits(&ret->asked, request->limits);
	if (request->kind != REQUEST_run)
		return;
	ret->mode       = run_mode_name((enum run_mode)request->mode);
	ret->code_bytes = (int64_t)code->len;
	code_compute_digest(code->text, code->len, ret->code_sha256);
}

static struct audit_entry audit_entry_of_peer(const struct peer *peer, int64_t time_us, const char *op)
{
	struct audit_entry ret;

	audit_entry_init(&ret);
	ret.time_us   = time_us;
	ret.op        = op;
	ret.peer_uid  = peer->uid;
	ret.peer_pid  = peer->pid;
	ret.peer_comm = peer->comm;
	return ret;
}

static void write_ended_entry(const struct served_run *r, const struct attempt *a, const struct peer *peer,
			      const struct limits *limits, const char *session, const struct record *record)
{
	struct audit_entry entry;

	if (!r->server->audit)
		return;
	entry = audit_entry_of_peer(peer, a->time_us, a->op);
	audit_entry_set_record(&entry, record);
	entry.mode        = a->mode;
	entry.profile     = r->profile->name;
	entry.session     = session;
	entry.principal   = a->principal;
	entry.code_sha256 = *a->code_sha256 ? a->code_sha256 : NULL;
	entry.code_bytes  = a->code_bytes;
	entry.asked       = a->asked;
	entry.granted     = (struct audit_limits){ AUDIT_LIMITS_ALL, *limits };
	audit_write(r->server->audit, &entry);
}

void attempt_write_run_ended(const struct served_run *r, const struct record *record)
{
	write_ended_entry(r, &r->attempt, &r->peer, &r->limits, NULL, record);
}

void attempt_write_call_ended(const struct session_call *call, const struct record *record)
{
	write_ended_entry(call->session->run, &call->attempt, &call->peer, &call->limits, call->session->run->id,
			  record);
}

static void write_refused_entry(struct audit *audit, struct audit_entry *entry, const struct denial *why)
{
	entry->reason = why->code == DENIAL_busy ? EXIT_busy : EXIT_denied;
	entry->error  = denial_code_name(why->code);
	entry->field  = why->field;
	audit_write(audit, entry);
}

void attempt_write_request_refused(const struct connection *c, const struct protocol_request *request,
				   const struct denial *why)
{
	struct audit_entry entry;

	if (!c->server->audit)
		return;
	entry         = audit_entry_of_peer(&c->peer, clock_now_us(), request->op);
	entry.mode    = json_string_value(json_object_get(request->source, "mode"));
	entry.profile = json_string_value(json_object_get(request->source, "profile"));
	entry.principal = json_string_value(json_object_get(request->source, "principal"));
	parse_asked_limits(&entry.asked, json_object_get(request->source, "limits"));
	write_refused_entry(c->server->audit, &entry, why);
}

void attempt_write_peer_refused(struct server *d, const struct peer *peer, const struct denial *why)
{
	struct audit_entry entry;

	if (!d->audit)
		return;
	entry = audit_entry_of_peer(peer, clock_now_us(), "connect");
	write_refused_entry(d->audit, &entry, why);
}

/* A denied call counts as a refusal: the audit writes a limited number of them for each user and minute. */
void attempt_write_tool_call(const struct connection *c, const char *run_id, const struct protocol_call *call)
{
	struct audit_entry entry;

	if (!c->server->audit)
		return;
	entry             = audit_entry_of_peer(&c->peer, clock_now_us(), "tool");
	entry.reason      = strcmp(call->verdict, "denied") == 0 ? EXIT_denied : EXIT_exited;
	entry.run_id      = run_id;
	entry.tool        = call->name;
	entry.error       = strcmp(call->verdict, "ok") == 0 ? NULL : call->verdict;
	entry.code_sha256 = call->args_sha256;
	audit_write(c->server->audit, &entry);
}
