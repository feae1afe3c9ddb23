#include "session_queue.h"

#include "denial.h"
#include "workspace_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void turn_end(struct turn *t)
{
	if (!t->mcp)
		return;
	loop_timer_clear(&t->mcp->loop, &t->patience);
	session_files_stop(&t->puts);
	named_session_leave(&t->use);
	free(t->files);
	t->files = NULL;
	t->mcp   = NULL;
}

static void fail(struct turn *t, const char *code, const char *field, const char *text)
{
	struct failure f;

	snprintf(f.code, sizeof f.code, "%s", code);
	snprintf(f.field, sizeof f.field, "%s", field);
	snprintf(f.text, sizeof f.text, "%s", text);
	turn_end(t);
	t->events->failed(t->owner, &f);
}

bool turn_is_waiting(const struct turn *t)
{
	return t->mcp && t->patience.set;
}

void turn_begun(struct turn *t, const char *run)
{
	snprintf(t->run, sizeof t->run, "%s", run);
	t->begun_ms = loop_now_ms();
}

char *turn_behind(const struct turn *t, char *buf, size_t len)
{
	const struct session_use *use = t->mcp && t->use.session ? t->use.session->turn : NULL;
	const struct turn        *ahead = use && use != &t->use ? use->owner : NULL;

	*buf = 0;
	if (ahead && *ahead->run)
		snprintf(buf, len, "execution %s, which has run for %lld s", ahead->run, (long long)(loop_now_ms() - ahead->begun_ms) / 1000);
	else if (ahead)
		snprintf(buf, len, "another call, which is about to begin");
	return buf;
}

static void go(struct turn *t)
{
	loop_timer_clear(&t->mcp->loop, &t->patience);
	snprintf(t->id, sizeof t->id, "%s", t->use.session->id);
	t->events->go(t->owner, t->id);
}

/* --- its files --- */

static bool on_entry(void *owner, const struct file_entry *entry, const char *name)
{
	struct turn *t = owner;

	if (entry->kind == FILE_LEFT && !*t->left_out)
		snprintf(t->left_out, sizeof t->left_out, "%.200s %s", name, workspace_file_left_out(entry->bytes));
	return true;
}

static bool on_bytes(void *owner, const char *bytes, size_t len)
{
	(void)owner, (void)bytes, (void)len;
	return true;
}

static void on_put(void *owner, const struct err *why)
{
	struct turn *t = owner;

	if (why)
		fail(t, "unavailable", "files", why->text);
	else if (*t->left_out)
		fail(t, "unavailable", "files", t->left_out);
	else
		go(t);
}

/* Sends a copy: the files are needed again if this session turns out to be gone. */
static void put(struct turn *t)
{
	static const struct transfer_events events = { .read = { on_entry, on_bytes }, .ended = on_put };
	char                               *copy   = malloc(t->files_len);

	if (!copy) {
		fail(t, "unavailable", "files", "out of memory");
		return;
	}
	memcpy(copy, t->files, t->files_len);
	session_files_begin(&t->puts, t->use.session, copy, t->files_len, &events, t);
}

/* --- its turn --- */

static void on_turn(void *owner)
{
	struct turn          *t = owner;
	struct named_session *s = t->use.session;

	if (*s->lost)
		snprintf(t->lost, sizeof t->lost, "%s", s->lost);
	*s->lost = 0;
	if (t->files)
		put(t);
	else
		go(t);
}

static void on_refused(void *owner, const struct failure *f)
{
	struct failure copy = *f;

	fail(owner, copy.code, copy.field, copy.text);
}

/*
 * timeout_ms limits the wait for other calls only. It begins again while the session opens, or its files are put, for which
 * there are other limits.
 */
static void on_late(void *owner)
{
	struct turn                *t = owner;
	const struct named_session *s = t->use.session;
	char                        behind[TURN_BEHIND_MAX], text[300];

	if (s->state != SESSION_OPEN || !s->turn || s->turn == &t->use) {
		loop_timer_set(&t->mcp->loop, &t->patience, (int64_t)t->timeout_ms);
		return;
	}
	snprintf(text, sizeof text, "\"%s\" is busy with %s. Wait for it with wait_execution, end it with cancel_execution, or use another session", t->session,
		 turn_behind(t, behind, sizeof behind));
	fail(t, denial_code_name(DENIAL_busy), "session", text);
}

static void enter(struct turn *t, struct named_session *s)
{
	named_session_enter(s, &t->use);
	loop_timer_set(&t->mcp->loop, &t->patience, (int64_t)t->timeout_ms);
}

void turn_wait(struct turn *t, struct named_session *s, char *files, size_t files_len, uint64_t timeout_ms, const struct turn_events *events, void *owner)
{
	*t = (struct turn){ .mcp = s->mcp, .files = files, .files_len = files_len, .timeout_ms = timeout_ms, .events = events, .owner = owner };
	snprintf(t->session, sizeof t->session, "%s", s->name);
	t->use      = (struct session_use){ .ready = on_turn, .refused = on_refused, .owner = t, .is_call = true };
	t->patience = (struct loop_timer){ .due = on_late, .owner = t };
	enter(t, s);
}

static bool is_of_session(const json_t *error)
{
	const char *code = json_string_value(json_object_get(error, "code")), *field = json_string_value(json_object_get(error, "field"));

	return strcmp(code, denial_code_name(DENIAL_not_found)) == 0 && field && strcmp(field, "session") == 0;
}

bool turn_again(struct turn *t, const json_t *error)
{
	struct named_session *s = t->mcp ? t->use.session : NULL;

	if (!s || s->is_over || t->is_again || !is_of_session(error))
		return false;
	t->is_again = true;
	named_session_gone(s, t->id);
	named_session_leave(&t->use);
	enter(t, s);
	return true;
}
