#define _GNU_SOURCE
#include "api_run.h"

#include "fd.h"
#include "fetched_files.h"
#include "member.h"
#include "profile_info.h"
#include "sealed.h"
#include "transfer.h"
#include "workspace_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct api_run {
	TAILQ_ENTRY(api_run)    link; /* of waiting, or under_way */
	struct api             *api;
	struct api_token       *token;
	enum interface          by;
	struct program          program;
	struct api_session     *session;
	bool                    is_under_way, has_ended, has_files; /* has_files: the transfer is not over */
	int64_t                 until_ms;   /* it waits no longer */
	struct profile_question question;   /* hello, then explain */
	struct run_client       client;
	json_t                 *message;
	int                     fd[2];
	size_t                  fds;
	struct transfer         transfer;
	struct fetched_files    fetched;
	struct run_outcome      outcome;
	api_run_ended          *ended;      /* NULL: abandoned */
	void                   *owner;
};

static void api_runs_pump_soon(struct api *a)
{
	loop_timer_set(&a->loop, &a->pump, 0);
}

/* --- its end --- */

static void api_run_free(struct api_run *r)
{
	profile_info_detach(&r->question);
	run_client_done(&r->client);
	transfer_close(&r->transfer);
	fetched_files_done(&r->fetched);
	for (size_t i = 0; i < ARRAY_LEN(r->fd); i++)
		fd_closep(&r->fd[i]);
	json_decref(r->message);
	program_done(&r->program);
	run_outcome_done(&r->outcome);
	free(r);
}

/* Of the queue, or of the runs under way. */
static void api_run_leave_list(struct api_run *r)
{
	struct api *a = r->api;

	if (r->is_under_way) {
		TAILQ_REMOVE(&a->under_way, r, link);
		a->n_under_way--;
		r->token->running--;
	} else {
		TAILQ_REMOVE(&a->waiting, r, link);
		a->n_waiting--;
	}
	if (r->session && r->is_under_way)
		r->session->is_busy = false;
	if (r->session)
		api_session_leave(r->session);
	r->session = NULL;
	api_runs_pump_soon(a);
}

static void api_run_finish(struct api_run *r)
{
	const struct run_outcome *o = &r->outcome;

	run_client_close(&r->client);
	api_run_leave_list(r);
	api_metrics_count_run(&r->api->metrics, r->by,
			      o->fault == FAULT_NONE ? member_text(o->record, "exit_reason") : o->code);
	if (r->ended)
		r->ended(r->owner, &r->outcome);
	api_run_free(r);
}

static void api_run_fail(struct api_run *r, enum run_fault fault, const char *code, const char *text)
{
	run_outcome_fail(&r->outcome, fault, code, "%s", text);
	api_run_finish(r);
}

void api_run_abandon(struct api_run *r)
{
	r->ended = NULL;
	if (!r->is_under_way) {
		api_run_leave_list(r);
		api_run_free(r);
	} else if (!*r->client.id && !run_client_is_sent(&r->client)) {
		api_run_fail(r, FAULT_BRIG, "cancelled", "its client has gone");
	} else {
		run_client_interrupt_or_cancel(&r->client, "cancelled");
	}
}

const struct run_outcome *api_run_refusal(const struct api_run *r)
{
	return !r->is_under_way && r->outcome.fault != FAULT_NONE ? &r->outcome : NULL;
}

bool api_run_is_under_way(const struct api_run *r)
{
	return r->is_under_way;
}

/* --- messages of brigd --- */

/* The run is over when its end is known, and its files are there. */
static void api_run_finish_if_whole(struct api_run *r)
{
	if (!r->has_ended || r->has_files)
		return;
	if (r->program.fetch) {
		fetched_files_finish(&r->fetched);
		r->outcome.files = json_incref(r->fetched.files);
		for (size_t i = 0; i < json_array_size(r->fetched.left); i++)
			run_outcome_add_note(&r->outcome, "%s",
					     json_string_value(json_array_get(r->fetched.left, i)));
	}
	api_run_finish(r);
}

static void api_run_on_started(void *owner, int fd[RUN_STREAMS])
{
	struct api_run *r = owner;

	(void)fd;
	for (size_t i = 0; i < ARRAY_LEN(r->fd); i++)
		fd_closep(&r->fd[i]);
}

static void api_run_on_ended(void *owner, const json_t *event)
{
	struct api_run     *r = owner;
	struct run_outcome *o = &r->outcome;
	struct err          ignored;

	run_client_drain(&r->client);
	o->out       = r->client.out.stream.data;
	o->out_len   = r->client.out.stream.len;
	o->err       = r->client.err.stream.data;
	o->err_len   = r->client.err.stream.len;
	o->truncated = stream_is_truncated(&r->client.out.stream) || stream_is_truncated(&r->client.err.stream);
	run_outcome_set_ended(o, event);
	if (r->client.report.stream.seen)
		o->report = run_client_report(&r->client, PROGRAM_REPORT_run, &ignored);
	r->has_ended = true;
	if (o->fault != FAULT_NONE)
		r->has_files = false; /* none come from a jail that was not built */
	api_run_finish_if_whole(r);
}

static void api_run_on_refused(void *owner, const json_t *answer)
{
	struct api_run *r     = owner;
	const json_t   *error = json_object_get(answer, "error");
	const char     *code  = member_text(error, "code");

	if (r->session && strcmp(code, denial_code_name(DENIAL_not_found)) == 0)
		run_outcome_fail(&r->outcome, FAULT_BRIG, "session_ended", "%s", member_text(error, "message"));
	else
		run_outcome_set_denial(&r->outcome, error);
	api_run_finish(r);
}

static void api_run_on_lost(void *owner, const struct err *why)
{
	api_run_fail(owner, FAULT_BRIG, "lost", why ? why->text : "brigd has closed the connection");
}

static const struct run_events events_of_api_run = {
	.started = api_run_on_started,
	.ended   = api_run_on_ended,
	.refused = api_run_on_refused,
	.lost    = api_run_on_lost,
};

/* --- files --- */

static bool api_run_on_file_entry(void *owner, const struct file_entry *entry, const char *name)
{
	return fetched_files_reader.entry(&((struct api_run *)owner)->fetched, entry, name);
}

static bool api_run_on_file_bytes(void *owner, const char *bytes, size_t len)
{
	return fetched_files_reader.bytes(&((struct api_run *)owner)->fetched, bytes, len);
}

static void api_run_on_files(void *owner, const struct err *why)
{
	struct api_run *r = owner;

	r->has_files = false;
	if (why && r->program.fetch)
		run_outcome_add_note(&r->outcome, "%s", why->text);
	api_run_finish_if_whole(r);
}

static const struct transfer_events events_of_api_files = {
	.read  = { .entry = api_run_on_file_entry, .bytes = api_run_on_file_bytes },
	.ended = api_run_on_files,
};

/* A program of another language is a file as well. The question is not repeated: brigd may have read some of it. */
static int api_run_add_files(struct api_run *r, struct err *e)
{
	struct program *p = &r->program;
	int             pair[2];
	size_t          len;
	char           *out;

	if (!json_object_size(p->files) && !p->fetch && !program_is_exec(p))
		return 0;
	if (!(out = program_make_transfer(p, false, &len)))
		return err_set(e, ERR_LIMIT, "out of memory");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		free(out);
		return err_sys(e, "socketpair");
	}
	r->fd[r->fds++]   = pair[1];
	r->client.is_once = true;
	r->fetched.asked  = p->fetch;
	r->has_files      = p->fetch != NULL; /* the end of the others does not matter: brigd refuses the run then */
	json_object_set_new(r->message, "files", json_true());
	return transfer_open(&r->transfer, &r->api->loop, pair[0], out, len, &events_of_api_files, r, e);
}

/* --- files of a run in a session: they are put first --- */

static bool api_run_on_put_entry(void *owner, const struct file_entry *entry, const char *name)
{
	struct api_run *r = owner;

	if (entry->kind == FILE_LEFT)
		run_outcome_fail(&r->outcome, FAULT_REQUEST, "files", "files: \"%.100s\" %s", name,
				 workspace_file_left_out_text(entry->bytes));
	return true;
}

static void api_run_on_put(void *owner, const struct err *why)
{
	struct api_run *r = owner;
	struct err      e;

	if (why)
		run_outcome_fail(&r->outcome, FAULT_BRIG, "files", "%s", why->text);
	else if (r->outcome.fault == FAULT_NONE && r->ended &&
		 run_client_start_request(&r->client, r->message, r->fd, r->fds, &e) == 0)
		return;
	else
		run_outcome_fail(&r->outcome, FAULT_BRIG, "unavailable", "%s",
				 r->ended ? e.text : "its client has gone");
	api_run_finish(r);
}

static const struct transfer_events events_of_put = {
	.read  = { .entry = api_run_on_put_entry },
	.ended = api_run_on_put,
};

static int api_run_put_files(struct api_run *r, struct err *e)
{
	size_t len;
	char  *out = program_make_transfer(&r->program, true, &len);

	if (!out)
		return err_set(e, ERR_LIMIT, "out of memory");
	return transfer_ask(&r->transfer, r->api->link, r->session->id, out, len, &events_of_put, r, e);
}

/* --- asking --- */

static uint64_t smaller_limit(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What is asked for beyond the ceiling of the profile becomes the ceiling, and a note of the answer. */
static void put_limit(struct api_run *r, json_t *limits, const json_t *explained, const char *name, uint64_t asked)
{
	const json_t *ceiling = json_object_get(json_object_get(explained, "ceilings"), name);
	uint64_t      most    = (uint64_t)json_number_value(ceiling);

	if (!asked)
		return;
	if (ceiling && asked > most) {
		run_outcome_add_note(&r->outcome, "%s: %" PRIu64 " is above the ceiling; the run had %" PRIu64, name,
				     asked, most);
		asked = most;
	}
	json_object_set_new(limits, name, json_integer((json_int_t)asked));
}

/* A program that gets more wall time gets as much CPU time. */
static json_t *make_api_limits(struct api_run *r, const json_t *explained)
{
	const struct program *p      = &r->program;
	json_t               *limits = json_object();
	uint64_t              cpu_ms = p->cpu_ms, own = profile_info_limit(explained, "limits", "cpu_ms");

	put_limit(r, limits, explained, "wall_ms", p->wall_ms);
	if (!cpu_ms && p->wall_ms > own)
		cpu_ms = smaller_limit(p->wall_ms, profile_info_limit(explained, "ceilings", "cpu_ms"));
	put_limit(r, limits, explained, "cpu_ms", cpu_ms);
	if (!r->session) {
		put_limit(r, limits, explained, "memory_bytes", p->memory_bytes);
		put_limit(r, limits, explained, "pids", p->pids);
	}
	return limits;
}

static void put_argv(struct api_run *r)
{
	json_t *argv = json_pack("[ss]", r->program.language->interpreter, r->program.language->file);

	json_array_extend(argv, r->program.args);
	json_object_set_new(r->message, "argv", argv);
}

static int api_run_make_message(struct api_run *r, const json_t *explained, struct err *e)
{
	struct program *p       = &r->program;
	bool            is_exec = !r->session && program_is_exec(p);
	int64_t         left    = r->until_ms - loop_now_ms();

	r->message = json_pack("{ss so}", "op", is_exec ? "exec" : "run", "limits", make_api_limits(r, explained));
	if (profile_info_has_feature(r->api->link, "principals"))
		json_object_set_new(r->message, "principal", json_string(r->token->name));
	if (r->session) {
		json_object_set_new(r->message, "session", json_string(r->session->id));
	} else {
		json_object_set(r->message, "profile", json_object_get(explained, "profile"));
		json_object_set_new(r->message, "wait_ms", json_integer(left > 0 ? left : 0));
	}
	if (p->input && !r->session)
		json_object_set_new(r->message, "stdin", json_true());
	if (is_exec) {
		put_argv(r);
		return 0;
	}
	if (json_array_size(p->args))
		json_object_set(r->message, "args", p->args);
	r->fd[r->fds] = sealed_create("main.py", p->code, p->code_len, e);
	return r->fd[r->fds++] < 0 ? -1 : 0;
}

static int api_run_send(struct api_run *r, const json_t *explained, struct err *e)
{
	struct program *p = &r->program;

	if (api_run_make_message(r, explained, e) < 0 || (!r->session && api_run_add_files(r, e) < 0))
		return -1;
	r->client.interrupts = r->session != NULL;
	r->client.input      = p->input;
	r->client.input_len  = p->input ? p->input_len : 0;
	if (r->session && json_object_size(p->files))
		return api_run_put_files(r, e);
	return run_client_start_request(&r->client, r->message, r->fd, r->fds, e);
}

static const char *api_run_profile(const struct api_run *r)
{
	return *r->token->profile ? r->token->profile : r->api->settings->profile;
}

static void api_run_on_explained(void *owner, const json_t *reply, const struct err *why)
{
	struct api_run *r = owner;
	struct err      e;

	if (!reply)
		api_run_fail(r, FAULT_BRIG, why->kind == ERR_BAD_SPEC ? "profile" : "unavailable", why->text);
	else if (api_run_send(r, reply, &e) < 0)
		api_run_fail(r, e.kind == ERR_BAD_SPEC ? FAULT_REQUEST : FAULT_BRIG,
			     e.kind == ERR_BAD_SPEC ? "bad_field" : "unavailable", e.text);
}

static void api_run_on_hello(void *owner, const json_t *reply, const struct err *why)
{
	struct api_run *r = owner;

	if (!reply) {
		api_run_fail(r, FAULT_BRIG, "unavailable", why->text);
		return;
	}
	r->question = (struct profile_question){ .known = api_run_on_explained, .owner = r };
	profile_info_ask(&r->question, r->api->link, "explain", api_run_profile(r));
}

/* --- the queue --- */

static bool api_run_may_begin(const struct api_run *r)
{
	const struct api *a = r->api;

	if (a->n_under_way >= a->settings->runs || (r->token->runs && r->token->running >= r->token->runs))
		return false;
	return !r->session || (r->session->state == API_SESSION_OPEN && !r->session->is_busy);
}

static void api_run_begin(struct api_run *r)
{
	struct api *a = r->api;

	TAILQ_REMOVE(&a->waiting, r, link);
	TAILQ_INSERT_TAIL(&a->under_way, r, link);
	a->n_waiting--;
	a->n_under_way++;
	r->token->running++;
	r->is_under_way = true;
	if (r->session)
		r->session->is_busy = true;
	r->question = (struct profile_question){ .known = api_run_on_hello, .owner = r };
	profile_info_ask(&r->question, a->link, "hello", NULL);
}

/* One step with the run; it may be freed. */
static void api_run_pump(struct api_run *r, int64_t now)
{
	if (r->session && r->session->state == API_SESSION_OVER)
		run_outcome_fail(&r->outcome, r->session->failure.fault, r->session->failure.code, "%s",
				 r->session->failure.text);
	else if (r->until_ms <= now && !api_run_may_begin(r))
		run_outcome_fail(&r->outcome, FAULT_BUSY, "busy",
				 "every place was taken for as long as a run may wait");
	if (r->outcome.fault != FAULT_NONE)
		api_run_finish(r);
	else if (api_run_may_begin(r))
		api_run_begin(r);
}

/* The first has waited longest; it is asked again when its time is over. */
void api_runs_pump(void *api)
{
	struct api     *a   = api;
	int64_t         now = loop_now_ms();
	struct api_run *r, *next;

	for (r = TAILQ_FIRST(&a->waiting); r; r = next) {
		next = TAILQ_NEXT(r, link);
		api_run_pump(r, now);
	}
	r = TAILQ_FIRST(&a->waiting);
	if (r)
		loop_timer_set(&a->loop, &a->late, r->until_ms > now ? r->until_ms - now : 1);
}

/* Why it must not even wait. Those that are about to begin do not count as waiting. */
static void api_run_admit(struct api_run *r)
{
	struct api *a       = r->api;
	size_t      most    = a->settings->queue + (a->settings->runs - a->n_under_way);
	int64_t     wait_ms = 0;

	if (a->drains)
		run_outcome_fail(&r->outcome, FAULT_BUSY, "stopping", "brig-api is stopping; try again in a while");
	else if (a->n_waiting > most)
		run_outcome_fail(&r->outcome, FAULT_BUSY, "queue", "%zu runs wait already", a->n_waiting - 1);
	else
		wait_ms = rate_bucket_take_call(&r->token->starts, r->token->per_minute, loop_now_ms());
	if (!wait_ms)
		return;
	run_outcome_fail(&r->outcome, FAULT_RATE, "rate", "this token may start %" PRIu64 " runs in a minute",
			 r->token->per_minute);
	r->outcome.retry_after_ms = (uint64_t)wait_ms;
}

struct api_run *api_run_start(struct api *a, struct api_token *t, enum interface by, struct program *p,
			      struct api_session *session, api_run_ended *ended, void *owner)
{
	struct api_run *r = calloc(1, sizeof *r);

	if (!r) {
		program_done(p);
		return NULL;
	}
	*r = (struct api_run){ .api     = a,
			       .token   = t,
			       .by      = by,
			       .program = *p,
			       .session = session,
			       .fd      = { -1, -1 },
			       .ended   = ended,
			       .owner   = owner };
	r->until_ms = loop_now_ms() + (int64_t)a->settings->wait_ms;
	*p = (struct program){ 0 };
	run_client_init(&r->client, a->link, -1, &events_of_api_run, r);
	if (session)
		api_session_use(session);
	TAILQ_INSERT_TAIL(&a->waiting, r, link);
	a->n_waiting++;
	api_run_admit(r);
	api_runs_pump_soon(a);
	return r;
}

void api_runs_fail_waiting(struct api *a, const char *code, const char *text)
{
	struct api_run *r, *next;

	for (r = TAILQ_FIRST(&a->waiting); r; r = next) {
		next = TAILQ_NEXT(r, link);
		api_run_fail(r, FAULT_BUSY, code, text);
	}
}

static void api_run_list_free(struct api_run_list *list)
{
	struct api_run *r;

	while ((r = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, r, link);
		api_run_free(r);
	}
}

/* Without the lists' counts, and without the sessions: all of them end. */
void api_runs_destroy(struct api *a)
{
	api_run_list_free(&a->waiting);
	api_run_list_free(&a->under_way);
}
