#include "session_use.h"

#include "denial.h"
#include "member.h"
#include "workspace_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_TIMEOUT_MS = 60 * 1000 }; /* the sender is in the jail, and may never end */

/* --- files --- */

void session_files_done(struct session_files *f)
{
	if (!f->mcp)
		return;
	loop_timer_clear(&f->mcp->loop, &f->late);
	if (f->transfer.is_session_gone && f->use.session)
		named_session_set_gone(f->use.session, f->id);
	transfer_close(&f->transfer);
	named_session_leave(&f->use);
	free(f->out);
	*f = (struct session_files){ 0 };
}

static void session_files_on_end(void *owner, const struct err *why)
{
	struct session_files *f = owner;

	f->events->ended(f->owner, why);
}

static void session_files_on_timeout(void *owner)
{
	struct err e;

	err_set(&e, ERR_LIMIT, "the session has not moved its files within %d s", FILES_TIMEOUT_MS / 1000);
	session_files_on_end(owner, &e);
}

static void session_files_on_ready(void *owner)
{
	struct session_files *f   = owner;
	char                 *out = f->out;
	struct err            e;

	f->out = NULL;
	snprintf(f->id, sizeof f->id, "%s", f->use.session->id);
	if (transfer_ask(&f->transfer, f->mcp->brigd_link, f->id, out, f->out_len, f->events, f->owner, &e) < 0)
		session_files_on_end(f, &e);
}

static void session_files_on_refused(void *owner, const struct failure *why)
{
	struct err e;

	err_set(&e, ERR_SETUP, "%s", why->text);
	session_files_on_end(owner, &e);
}

void session_files_start(struct session_files *f, struct named_session *s, char *out, size_t out_len,
			 const struct transfer_events *events, void *owner)
{
	static const struct session_events in_session = { .ready   = session_files_on_ready,
							  .refused = session_files_on_refused };

	*f      = (struct session_files){ .mcp = s->mcp, .out = out, .out_len = out_len, .events = events };
	f->owner = owner;
	f->use  = (struct session_use){ .events = &in_session, .owner = f };
	f->late = (struct loop_timer){ .due = session_files_on_timeout, .owner = f };
	loop_timer_set(&s->mcp->loop, &f->late, FILES_TIMEOUT_MS);
	named_session_enter(s, &f->use);
}

/* --- calls --- */

void queued_call_done(struct queued_call *q)
{
	if (!q->mcp)
		return;
	loop_timer_clear(&q->mcp->loop, &q->late);
	session_files_done(&q->puts);
	named_session_leave(&q->use);
	free(q->files);
	q->files = NULL;
	q->mcp   = NULL;
}

static void queued_call_fail(struct queued_call *q, const char *code, const char *field, const char *text)
{
	struct failure f;

	failure_set(&f, code, field, text);
	queued_call_done(q);
	q->events->refused(q->owner, &f);
}

bool queued_call_waits(const struct queued_call *q)
{
	return q->mcp && q->late.set;
}

void queued_call_set_run(struct queued_call *q, const char *run)
{
	snprintf(q->run, sizeof q->run, "%s", run);
	q->begun_ms = loop_now_ms();
}

char *queued_call_print_blocker(const struct queued_call *q, char *buf, size_t len)
{
	const struct session_use *use   = q->mcp && q->use.session ? q->use.session->running : NULL;
	const struct queued_call *ahead = use && use != &q->use ? use->owner : NULL;

	*buf = 0;
	if (ahead && *ahead->run)
		snprintf(buf, len, "execution %s, which has run for %lld s", ahead->run,
			 (long long)(loop_now_ms() - ahead->begun_ms) / 1000);
	else if (ahead)
		snprintf(buf, len, "another call, which is about to begin");
	return buf;
}

static void queued_call_set_ready(struct queued_call *q)
{
	loop_timer_clear(&q->mcp->loop, &q->late);
	snprintf(q->id, sizeof q->id, "%s", q->use.session->id);
	q->events->ready(q->owner);
}

static bool queued_call_on_put_entry(void *owner, const struct file_entry *entry, const char *name)
{
	struct queued_call *q = owner;

	if (entry->kind == FILE_LEFT && !*q->left_out)
		snprintf(q->left_out, sizeof q->left_out, "%.200s %s", name,
			 workspace_file_left_out_text(entry->bytes));
	return true;
}

static void queued_call_on_put(void *owner, const struct err *why)
{
	struct queued_call *q = owner;

	if (why || *q->left_out) {
		queued_call_fail(q, "unavailable", "files", why ? why->text : q->left_out);
		return;
	}
	session_files_done(&q->puts);
	queued_call_set_ready(q);
}

/* Puts a copy of its files: they are needed again if this session turns out to be gone. */
static void queued_call_on_ready(void *owner)
{
	static const struct transfer_events events = { .read  = { .entry = queued_call_on_put_entry },
						       .ended = queued_call_on_put };
	struct queued_call                 *q      = owner;
	struct named_session               *s      = q->use.session;
	char                               *copy;

	if (*s->lost)
		snprintf(q->lost, sizeof q->lost, "%s", s->lost);
	*s->lost = 0;
	if (!q->files) {
		queued_call_set_ready(q);
		return;
	}
	copy = malloc(q->files_len);
	if (!copy) {
		queued_call_fail(q, "unavailable", "files", "out of memory");
		return;
	}
	memcpy(copy, q->files, q->files_len);
	session_files_start(&q->puts, s, copy, q->files_len, &events, q);
}

static void queued_call_on_refused(void *owner, const struct failure *f)
{
	struct queued_call *q = owner;

	queued_call_done(q);
	q->events->refused(q->owner, f);
}

/*
 * timeout_ms limits the wait for other calls only. It begins again while the session opens, or its files are put, for
 * which there are other limits.
 */
static void queued_call_on_timeout(void *owner)
{
	struct queued_call         *q = owner;
	const struct named_session *s = q->use.session;
	char                        behind[QUEUED_BEHIND_MAX], text[300];

	if (s->state != SESSION_OPEN || !s->running || s->running == &q->use) {
		loop_timer_set(&q->mcp->loop, &q->late, (int64_t)q->timeout_ms);
		return;
	}
	snprintf(text, sizeof text,
		 "\"%s\" is busy with %s. Wait for it with wait_execution, end it with cancel_execution, or use "
		 "another session",
		 q->session, queued_call_print_blocker(q, behind, sizeof behind));
	queued_call_fail(q, denial_code_name(DENIAL_busy), "session", text);
}

static void queued_call_enter(struct queued_call *q, struct named_session *s)
{
	named_session_enter(s, &q->use);
	loop_timer_set(&q->mcp->loop, &q->late, (int64_t)q->timeout_ms);
}

void queued_call_start(struct queued_call *q, struct named_session *s, char *files, size_t files_len,
		      uint64_t timeout_ms, const struct session_events *events, void *owner)
{
	static const struct session_events in_session = { .ready   = queued_call_on_ready,
							  .refused = queued_call_on_refused };

	*q = (struct queued_call){
		.mcp        = s->mcp,
		.files      = files,
		.files_len  = files_len,
		.timeout_ms = timeout_ms,
		.events     = events,
		.owner      = owner,
	};
	snprintf(q->session, sizeof q->session, "%s", s->name);
	q->use  = (struct session_use){ .events = &in_session, .owner = q, .is_call = true };
	q->late = (struct loop_timer){ .due = queued_call_on_timeout, .owner = q };
	queued_call_enter(q, s);
}

bool queued_call_retry(struct queued_call *q, const json_t *error)
{
	struct named_session *s       = q->mcp ? q->use.session : NULL;
	bool                  is_gone = strcmp(member_text(error, "code"), denial_code_name(DENIAL_not_found)) == 0 &&
		       strcmp(member_text(error, "field"), "session") == 0;

	if (!s || named_session_is_over(s) || q->is_again || !is_gone)
		return false;
	q->is_again = true;
	named_session_set_gone(s, q->id);
	named_session_leave(&q->use);
	queued_call_enter(q, s);
	return true;
}
