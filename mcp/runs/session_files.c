#include "session_files.h"

#include "denial.h"
#include "fd.h"

#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 60 * 1000 }; /* the sender is in the jail, and may never end */

void session_files_stop(struct session_files *f)
{
	if (!f->mcp)
		return;
	loop_timer_clear(&f->mcp->loop, &f->patience);
	brigd_link_forget(f->mcp->brigd_link, &f->question);
	transfer_close(&f->transfer);
	named_session_leave(&f->use);
	json_decref(f->message);
	free(f->out);
	*f = (struct session_files){ 0 };
}

static void end(struct session_files *f, const struct err *why)
{
	const struct transfer_events *events = f->events;
	void                         *owner  = f->owner;

	session_files_stop(f);
	events->ended(owner, why);
}

static void on_late(void *owner)
{
	struct err e;

	err_set(&e, ERR_LIMIT, "the session has not moved its files within %d s", TIMEOUT_MS / 1000);
	end(owner, &e);
}

/* --- what comes --- */

static bool on_entry(void *owner, const struct file_entry *entry, const char *name)
{
	struct session_files *f = owner;

	return f->events->read.entry(f->owner, entry, name);
}

static bool on_bytes(void *owner, const char *bytes, size_t len)
{
	struct session_files *f = owner;

	return f->events->read.bytes(f->owner, bytes, len);
}

static void on_over(void *owner, const struct err *why)
{
	end(owner, why);
}

static const struct transfer_events relay = { .read = { on_entry, on_bytes }, .ended = on_over };

/* --- asking for the socket --- */

static void refuse(struct session_files *f, const json_t *error)
{
	const char *code = json_string_value(json_object_get(error, "code")), *text = json_string_value(json_object_get(error, "message"));
	struct err  e;

	err_set(&e, ERR_SETUP, "%s", text);
	if (f->use.session && strcmp(code, denial_code_name(DENIAL_not_found)) == 0)
		named_session_gone(f->use.session, json_string_value(json_object_get(f->message, "session")));
	end(f, &e);
}

static void on_answer(void *owner, struct datagram *d)
{
	struct session_files *f = owner;
	struct err            e;
	char                 *out = f->out;

	if (d->answer.kind == ANSWER_ERROR) {
		refuse(f, json_object_get(d->answer.source, "error"));
		return;
	}
	if (d->answer.kind != ANSWER_REPLY || d->fds != 1) { /* datagram.h checks what belongs to a reply of files */
		err_set(&e, ERR_PROTOCOL, "brigd has answered a question for files with something else");
		end(f, &e);
		return;
	}
	brigd_link_forget(f->mcp->brigd_link, &f->question);
	f->out = NULL;
	if (transfer_open(&f->transfer, f->mcp, fd_take(&d->fd[0]), out, f->out_len, &relay, f, &e) < 0)
		end(f, &e);
}

static void on_lost(void *owner, const struct err *why)
{
	end(owner, why);
}

/* --- its turn --- */

static void on_ready(void *owner)
{
	struct session_files *f = owner;
	struct err            e;

	f->message  = json_pack("{ss ss}", "op", "files", "session", f->use.session->id);
	f->question = (struct question){ .answered = on_answer, .lost = on_lost, .owner = f, .message = f->message, .repeated = true };
	if (brigd_link_ask(f->mcp->brigd_link, &f->question, &e) < 0)
		end(f, &e);
}

static void on_refused(void *owner, const struct failure *why)
{
	struct err e;

	err_set(&e, ERR_SETUP, "%s", why->text);
	end(owner, &e);
}

void session_files_begin(struct session_files *f, struct named_session *s, char *out, size_t out_len, const struct transfer_events *events, void *owner)
{
	*f          = (struct session_files){ .mcp = s->mcp, .out = out, .out_len = out_len, .events = events, .owner = owner };
	f->use      = (struct session_use){ .ready = on_ready, .refused = on_refused, .owner = f };
	f->patience = (struct loop_timer){ .due = on_late, .owner = f };
	loop_timer_set(&s->mcp->loop, &f->patience, TIMEOUT_MS);
	named_session_enter(s, &f->use);
}
