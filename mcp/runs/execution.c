#define _GNU_SOURCE
#include "execution.h"

#include "denial.h"
#include "elicitation.h"
#include "fd.h"
#include "member.h"
#include "metrics.h"
#include "run_id.h"
#include "sealed.h"
#include "wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
	FREE_WAIT_MS = 60 * 1000, /* for a free jail */
	INTERRUPTED  = 130,       /* exit status of an interrupted call */
};

/* --- its end --- */

static void execution_close_fds(struct execution *x)
{
	for (size_t i = 0; i < ARRAY_LEN(x->fd); i++)
		fd_closep(&x->fd[i]);
}

/* Closes all that only a run which goes on needs. May be called twice. */
static void execution_close(struct execution *x)
{
	run_client_close(&x->run);
	execution_close_fds(x);
	transfer_close(&x->transfer);
	queued_call_done(&x->queued);
	run_tools_close(&x->tools);
	elicitation_withdraw(x);
}

static void execution_free(struct execution *x)
{
	execution_close(x);
	run_client_done(&x->run);
	run_tools_done(&x->tools);
	TAILQ_REMOVE(&x->mcp->executions->all, x, link);
	json_decref(x->message);
	json_decref(x->record);
	json_decref(x->program_report);
	json_decref(x->round_of);
	json_decref(x->answer_form.warnings);
	free(x->profile);
	free(x->input);
	free(x);
}

static bool execution_is_wanted(const struct execution *x)
{
	return !TAILQ_EMPTY(&x->waiters) || *x->handle;
}

/* Closes everything, then calls the waiters; each of them leaves inside of its ended(). */
static void execution_close_and_report(struct execution *x)
{
	struct waiter *a, *next, last = { 0 }; /* of this function: x is not freed when the others have left */

	x->ended_ms = loop_now_ms();
	execution_close(x);
	execution_add_waiter(x, &last);
	for (a = TAILQ_FIRST(&x->waiters); a != &last; a = next) {
		next = TAILQ_NEXT(a, link);
		if (a->ended)
			a->ended(a->owner, x);
	}
	TAILQ_REMOVE(&x->waiters, &last, link);
	/* not now: it may free x, which callers still use */
	loop_timer_set(&x->mcp->loop, &x->mcp->executions->stale, 0);
	if (!execution_is_wanted(x))
		execution_free(x);
}

static void execution_fail(struct execution *x, const char *code, const char *field, const char *text)
{
	failure_set(&x->failure, code, field, text);
	execution_close_and_report(x);
}

/* --- stopping --- */

void execution_request_cancel(struct execution *x, const char *reason)
{
	if (x->run.cancelled || x->run.state == RUN_OVER)
		return;
	run_client_interrupt_or_cancel(&x->run, reason);
	/* tool calls of a program that is being killed must not be done, even if a person allows one now */
	run_tools_close(&x->tools);
	if (!*x->run.id && !run_client_is_sent(&x->run))
		execution_fail(x, "cancelled", NULL, "cancelled before it had started");
}

void execution_add_waiter(struct execution *x, struct waiter *a)
{
	TAILQ_INSERT_TAIL(&x->waiters, a, link);
}

void execution_remove_waiter(struct execution *x, struct waiter *a)
{
	TAILQ_REMOVE(&x->waiters, a, link);
	if (execution_is_wanted(x))
		return;
	if (x->run.state == RUN_OVER)
		execution_free(x);
	else
		execution_request_cancel(x, "cancelled");
}

/* --- tools --- */

static void execution_on_tool_question(void *owner)
{
	struct execution *x = owner;

	loop_timer_set(&x->mcp->loop, &x->question_timer, 0);
}

static void execution_on_question_timer(void *owner)
{
	elicitation_send_open_questions(owner);
}

/* --- messages of brigd --- */

static void execution_on_started(void *owner, int fd[RUN_STREAMS])
{
	struct execution *x = owner;

	queued_call_set_run(&x->queued, x->run.id);
	/* without a bridge the program's calls of tools fail, and the run goes on */
	if (fd[RUN_TOOLS] >= 0 && x->mcp->broker)
		(void)!run_tools_open(&x->tools, x->mcp, fd_take(&fd[RUN_TOOLS]), x->run.id, execution_on_tool_question,
				      x);
	execution_close_fds(x);
	metrics_run_started(x->mcp->metrics);
}

/* A flood of output has cancelled it: as in execution_request_cancel(). */
static void execution_on_output(void *owner, struct run_pipe *p)
{
	struct execution *x = owner;

	(void)p;
	if (x->run.cancelled)
		run_tools_close(&x->tools);
}

/* The report is hostile: an invalid one is ignored, and the record has the reason. */
static void execution_read_report(struct execution *x)
{
	const struct stream *s = &x->run.report.stream;
	struct err           why;

	if (!s->seen)
		return;
	x->program_report = run_client_report(&x->run, x->is_report ? PROGRAM_REPORT_run : PROGRAM_REPORT_check, &why);
	if (x->program_report)
		x->program_report_bytes = s->len + WIRE_WEIGHT_BYTES * wire_memory_weight(s->data, s->len);
	if (!x->is_report)
		return;
	if (x->program_report)
		program_report_copy_to_record(x->record, x->program_report);
	else
		program_report_set_warning(x->record, &why);
}

/* A call in a session that ended by itself after an interrupt gets the reason of the interrupt. */
static void set_reason_of_interrupt(struct execution *x)
{
	const char *reason = x->run.cancelled;
	bool        by_us  = json_integer_value(json_object_get(x->record, "exit_code")) == INTERRUPTED ||
		     (reason && strcmp(reason, "output_limit") == 0);

	if (reason && x->queued.mcp && by_us && strcmp(member_text(x->record, "exit_reason"), "exited") == 0)
		json_object_set_new(x->record, "exit_reason", json_string(reason));
}

static void execution_on_ended(void *owner, const json_t *event)
{
	struct execution *x          = owner;
	const json_t     *exec_error = json_object_get(event, "exec_error");

	run_client_drain(&x->run);
	run_tools_close(&x->tools); /* before they are counted */
	x->record = json_copy(json_object_get(event, "record"));
	if (json_is_string(exec_error))
		snprintf(x->exec_error, sizeof x->exec_error, "%s", json_string_value(exec_error));
	run_client_add_byte_counts(&x->run, x->record);
	if (x->tools.mcp)
		json_object_set_new(x->record, "tool_calls", tool_bridge_summary(&x->tools.bridge));
	execution_read_report(x);
	set_reason_of_interrupt(x);
	if (x->run.state == RUN_WAITS) /* the gauge counts started runs, and metrics_run_ended() takes one away */
		metrics_run_started(x->mcp->metrics);
	metrics_run_ended(x->mcp->metrics, json_string_value(json_object_get(x->record, "exit_reason")), x->profile);
	execution_close_and_report(x);
}

static void execution_on_refused(void *owner, const json_t *answer)
{
	struct execution *x     = owner;
	const json_t     *error = json_object_get(answer, "error");
	const char       *code  = member_text(error, "code");

	if (!x->run.cancelled && queued_call_retry(&x->queued, error))
		return;
	if (x->run.cancelled && strcmp(code, denial_code_name(DENIAL_busy)) == 0) {
		/* mostly while it waited for a free jail */
		execution_fail(x, "cancelled", NULL, "cancelled before it had started");
		return;
	}
	metrics_count_refused(x->mcp->metrics, code);
	execution_fail(x, code, member_text(error, "field"), member_text(error, "message"));
}

/* The connection broke. A run that has not started has had no effect, and brigd_link has already asked twice. */
static void execution_on_lost(void *owner, const struct err *why)
{
	struct execution *x    = owner;
	const char       *code = "lost";

	if (x->run.state == RUN_RUNS) {
		stream_drain(&x->run.out.stream);
		stream_drain(&x->run.err.stream);
		metrics_run_ended(x->mcp->metrics, "cancelled", x->profile);
	}
	if (why->kind == ERR_BAD_SPEC)
		code = "bad_field";
	else if (x->run.state == RUN_WAITS && why->kind == ERR_MISSING)
		code = "missing";
	execution_fail(x, code, NULL, why->text);
}

/* --- asking --- */

/* The question is not repeated over a new connection: the brigd that went away may have read some of the files. */
static int execution_add_files(struct execution *x, const struct execution_request *request, struct err *e)
{
	/* brigd refuses a run whose files could not be put */
	static const struct transfer_events ignored = { .ended = NULL };
	int                                 pair[2];

	if (!request->files)
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		free(request->files);
		return err_sys(e, "socketpair");
	}
	x->fd[x->fds++] = pair[1];
	x->run.is_once = true;
	json_object_set_new(x->message, "files", json_true());
	return transfer_open(&x->transfer, &x->mcp->loop, pair[0], request->files, request->files_len, &ignored, x, e);
}

/*
 * Asks for a run with a jail of its own. A check reads no files, so it has no folders of --ro. Takes request->files
 * over.
 */
static int execution_request_own_jail(struct execution *x, const struct execution_request *request, struct err *e)
{
	const struct ro_folders *s = &x->mcp->shown;

	json_object_set_new(x->message, "wait_ms", json_integer(FREE_WAIT_MS));
	if (x->is_report && ro_folders_dup_fds(s, x->fd + x->fds, e) < 0) {
		free(request->files);
		return -1;
	}
	if (x->is_report) {
		ro_folders_put_into_request(s, x->message);
		x->fds += s->n;
	}
	return execution_add_files(x, request, e) < 0 ? -1
						 : run_client_start_request(&x->run, x->message, x->fd, x->fds, e);
}

static void execution_on_session_ready(void *owner)
{
	struct execution *x = owner;
	struct err        e;

	json_object_set_new(x->message, "session", json_string(x->queued.id));
	if (run_client_start_request(&x->run, x->message, x->fd, x->fds, &e) < 0)
		execution_fail(x, e.kind == ERR_MISSING ? "missing" : "unavailable", NULL, e.text);
}

static void execution_on_session_refused(void *owner, const struct failure *f)
{
	struct execution *x = owner;

	metrics_count_refused(x->mcp->metrics, f->code);
	execution_fail(x, f->code, f->field, f->text);
}

static const struct run_events events_of_run = {
	.started = execution_on_started,
	.output  = execution_on_output,
	.ended   = execution_on_ended,
	.refused = execution_on_refused,
	.lost    = execution_on_lost,
};

static void run_pipe_set_tail(struct run_pipe *p, char tail[EXECUTION_TAIL])
{
	p->stream.tail     = tail;
	p->stream.tail_max = EXECUTION_TAIL;
}

static struct execution *execution_create(struct mcp *m, const struct execution_request *request)
{
	struct execution *x    = calloc(1, sizeof *x);
	const char       *mode = json_string_value(json_object_get(request->message, "mode"));

	if (!x)
		return NULL;
	x->mcp     = m;
	x->message = request->message;
	x->fds     = 1;
	for (size_t i = 0; i < ARRAY_LEN(x->fd); i++)
		x->fd[i] = -1;
	run_client_init(&x->run, m->brigd_link, -1, &events_of_run, x);
	x->run.interrupts = request->session;
	run_pipe_set_tail(&x->run.out, x->tail[0]);
	run_pipe_set_tail(&x->run.err, x->tail[1]);
	x->asked_ms  = loop_now_ms();
	x->question_timer = (struct loop_timer){ .due = execution_on_question_timer, .owner = x };
	x->is_report = request->session || strcmp(mode, "check") != 0;
	TAILQ_INIT(&x->waiters);
	TAILQ_INSERT_TAIL(&m->executions->all, x, link);
	return x;
}

static int execution_copy_request(struct execution *x, const struct execution_request *request, struct err *e)
{
	const char *profile = member_text(request->session ? request->session->message : request->message, "profile");

	snprintf(x->principal, sizeof x->principal, "%s", request->principal);
	x->profile = strdup(profile);
	if (request->input)
		x->input = malloc(request->input_len + 1);
	if (!x->profile || (request->input && !x->input))
		return err_set(e, ERR_LIMIT, "out of memory");
	if (request->input)
		memcpy(x->input, request->input, request->input_len);
	x->run.input     = x->input;
	x->run.input_len = x->input ? request->input_len : 0;
	x->fd[0] = sealed_create("main.py", request->code, request->code_len, e);
	return x->fd[0] < 0 ? -1 : 0;
}

struct execution *execution_start(struct mcp *m, const struct execution_request *request, struct err *e)
{
	static const struct session_events in_session = { .ready   = execution_on_session_ready,
							  .refused = execution_on_session_refused };
	struct execution                  *x          = execution_create(m, request);

	if (!x) {
		json_decref(request->message);
		err_set(e, ERR_LIMIT, "out of memory");
	}
	if (!x || execution_copy_request(x, request, e) < 0) {
		free(request->files);
	} else if (request->session) {
		queued_call_start(&x->queued, request->session, request->files, request->files_len, request->timeout_ms,
				 &in_session, x);
		return x;
	} else if (execution_request_own_jail(x, request, e) == 0) {
		return x;
	}
	if (x)
		execution_free(x);
	return NULL;
}

/* --- its last line --- */

static const char *find_last_line(const char *bytes, size_t n, size_t *len)
{
	const char *end = bytes + n, *from;

	while (end > bytes && (end[-1] == '\n' || end[-1] == '\r'))
		end--;
	for (from = end; from > bytes && from[-1] != '\n' && from[-1] != '\r'; from--)
		;
	*len = (size_t)(end - from);
	return from;
}

static const char *stream_last_line(const struct stream *s, size_t *len)
{
	return s->tail_len ? find_last_line(s->tail, s->tail_len, len)
			   : find_last_line(s->data ? s->data : "", s->len, len);
}

const char *execution_last_line(const struct execution *x, size_t *len)
{
	const char *line = stream_last_line(&x->run.out.stream, len);

	return *len ? line : stream_last_line(&x->run.err.stream, len);
}

/* --- handles, and results that are kept --- */

/* Counts the results that are kept, and returns the one that ended first. */
static struct execution *find_oldest_kept(const struct executions *all, size_t *n, uint64_t *bytes)
{
	struct execution *x, *oldest = NULL;

	*n     = 0;
	*bytes = 0;
	TAILQ_FOREACH(x, &all->all, link) {
		if (!*x->handle || x->run.state != RUN_OVER || !TAILQ_EMPTY(&x->waiters))
			continue;
		++*n;
		*bytes += sizeof *x + x->run.out.stream.room + x->run.err.stream.room + x->run.report.stream.room;
		*bytes += x->program_report_bytes + x->run.input_len;
		if (!oldest || x->ended_ms < oldest->ended_ms)
			oldest = x;
	}
	return oldest;
}

static void executions_forget_stale(void *owner)
{
	struct executions *all = owner;
	struct execution  *oldest;
	uint64_t           bytes;
	size_t             n;

	while ((oldest = find_oldest_kept(all, &n, &bytes))) {
		int64_t age = loop_now_ms() - oldest->ended_ms;

		if (n <= KEPT_MAX && bytes <= KEPT_BYTES && age < KEPT_MS) {
			loop_timer_set(&all->mcp->loop, &all->stale, KEPT_MS - age);
			return;
		}
		execution_free(oldest);
	}
	loop_timer_clear(&all->mcp->loop, &all->stale);
}

bool execution_give_handle(struct execution *x)
{
	size_t            n = 0;
	struct execution *other;
	struct err        ignored;

	if (*x->handle)
		return true;
	TAILQ_FOREACH(other, &x->mcp->executions->all, link)
		n += *other->handle && other->run.state != RUN_OVER;
	if (n >= KEPT_RUNNING_MAX)
		return false;
	if (*x->run.id)
		memcpy(x->handle, x->run.id, sizeof x->handle);
	else
		return run_id_make(x->handle, &ignored) == 0;
	return true;
}

struct execution *execution_find(struct mcp *m, const char *principal, const char *handle)
{
	struct execution *x;

	TAILQ_FOREACH(x, &m->executions->all, link) {
		bool is_known = *x->handle || x->run.state == RUN_RUNS;

		if (is_known && strcmp(x->principal, principal) == 0 && *handle &&
		    (strcmp(x->handle, handle) == 0 || strcmp(x->run.id, handle) == 0))
			return x;
	}
	return NULL;
}

struct executions *executions_create(struct mcp *m)
{
	struct executions *all = calloc(1, sizeof *all);

	if (!all)
		return NULL;
	all->mcp   = m;
	all->stale = (struct loop_timer){ .due = executions_forget_stale, .owner = all };
	TAILQ_INIT(&all->all);
	return all;
}

void executions_destroy(struct executions *all)
{
	struct execution *x;

	if (!all)
		return;
	while ((x = TAILQ_FIRST(&all->all)))
		execution_free(x);
	loop_timer_clear(&all->mcp->loop, &all->stale);
	free(all);
}
