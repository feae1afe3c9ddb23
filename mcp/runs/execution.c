#define _GNU_SOURCE
#include "execution.h"

#include "elicitation.h"
#include "denial.h"
#include "fd.h"
#include "metrics.h"
#include "program_report.h"
#include "run_talk.h"
#include "sealed.h"
#include "wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { PLACE_WAIT_MS = 60 * 1000, INTERRUPT_MS = 2 * 1000, /* like brigd at a timeout */ INTERRUPTED = 130 /* exit status of an interrupted call */ };

/* --- its end --- */

static void close_pipe(struct execution_pipe *p)
{
	loop_timer_clear(&p->execution->mcp->loop, &p->rest);
	if (p->stream.fd >= 0)
		loop_remove(&p->execution->mcp->loop, &p->source);
	fd_closep(&p->stream.fd);
}

static void close_input(struct execution *x)
{
	if (x->input.fd >= 0)
		loop_remove(&x->mcp->loop, &x->input);
	fd_closep(&x->input.fd);
}

static void close_fds(struct execution *x)
{
	for (size_t i = 0; i < ARRAY_LEN(x->fd); i++)
		fd_closep(&x->fd[i]);
}

static void end_turn(struct execution *x)
{
	loop_timer_clear(&x->mcp->loop, &x->patience);
	turn_end(&x->turn);
}

static void destroy(struct execution *x)
{
	struct execution_pipe *const pipes[] = { &x->out, &x->err, &x->report };

	brigd_link_forget(x->mcp->brigd_link, &x->question);
	close_input(x);
	for (size_t i = 0; i < ARRAY_LEN(pipes); i++) {
		close_pipe(pipes[i]);
		stream_done(&pipes[i]->stream);
	}
	close_fds(x);
	transfer_close(&x->transfer);
	end_turn(x);
	elicitation_forget(x);
	run_tools_done(&x->tools);
	TAILQ_REMOVE(&x->mcp->executions->all, x, link);
	json_decref(x->message);
	json_decref(x->record);
	json_decref(x->program_report);
	json_decref(x->round_of);
	json_decref(x->answer_form.warnings);
	free(x->profile);
	free(x->input_text);
	free(x);
}

static bool is_wanted(const struct execution *x)
{
	return !TAILQ_EMPTY(&x->waiters) || *x->handle;
}

/* Closes everything, then tells the waiters; each of them leaves inside of its ended(). */
static void end(struct execution *x)
{
	struct waiter *a, *next, last = { 0 }; /* an waiter of this function, so that x is not freed when the others have left */

	x->state    = EXECUTION_ENDED;
	x->ended_ms = loop_now_ms();
	brigd_link_forget(x->mcp->brigd_link, &x->question);
	close_input(x);
	close_pipe(&x->out);
	close_pipe(&x->err);
	close_pipe(&x->report);
	close_fds(x);
	transfer_close(&x->transfer);
	end_turn(x);
	run_tools_close(&x->tools);
	elicitation_forget(x);
	execution_add_waiter(x, &last);
	for (a = TAILQ_FIRST(&x->waiters); a != &last; a = next) {
		next = TAILQ_NEXT(a, link);
		a->ended(a->owner, x);
	}
	TAILQ_REMOVE(&x->waiters, &last, link);
	loop_timer_set(&x->mcp->loop, &x->mcp->executions->stale, 0); /* in the next turn of the loop: it may free x, which callers still use */
	if (!is_wanted(x))
		destroy(x);
}

static void fail(struct execution *x, const char *code, const char *field, const char *text)
{
	snprintf(x->failure.code, sizeof x->failure.code, "%s", code);
	snprintf(x->failure.field, sizeof x->failure.field, "%s", field ? field : "");
	snprintf(x->failure.text, sizeof x->failure.text, "%s", text);
	end(x);
}

/* --- stopping --- */

static void on_not_stopped(void *owner)
{
	struct execution *x = owner;

	brigd_link_send(x->mcp->brigd_link, run_talk_cancel(x->id, x->stopped));
}

/* Interrupts a call in a session. If it does not end, on_not_stopped() cancels it. */
static void interrupt(struct execution *x, const char *reason)
{
	if (x->stopped)
		return;
	x->stopped  = reason;
	x->patience = (struct loop_timer){ .due = on_not_stopped, .owner = x };
	brigd_link_send(x->mcp->brigd_link, json_pack("{ss ss}", "op", "interrupt", "run", x->id));
	loop_timer_set(&x->mcp->loop, &x->patience, INTERRUPT_MS);
}

/* reason: must outlive x, as a string constant does. */
static void stop(struct execution *x, const char *reason)
{
	if (x->turn.mcp)
		interrupt(x, reason);
	else
		brigd_link_send(x->mcp->brigd_link, run_talk_cancel(x->id, reason));
}

/* Cancels once: output that is read until the program is dead would cancel again and again. */
void execution_cancel(struct execution *x, const char *reason)
{
	if (x->cancelled || x->state == EXECUTION_ENDED)
		return;
	x->cancelled = true;
	run_tools_close(&x->tools); /* tool calls of a program that is being killed must not be done, even if a person allows one now */
	if (*x->id)
		stop(x, reason);
	else if (!x->question.tag || !x->question.sent)
		fail(x, "cancelled", NULL, "cancelled before it had started");
}

void execution_add_waiter(struct execution *x, struct waiter *a)
{
	TAILQ_INSERT_TAIL(&x->waiters, a, link);
}

void execution_leave(struct execution *x, struct waiter *a)
{
	TAILQ_REMOVE(&x->waiters, a, link);
	if (is_wanted(x))
		return;
	if (x->state == EXECUTION_ENDED)
		destroy(x);
	else
		execution_cancel(x, "cancelled");
}

/* --- pipes --- */

static void on_flood(struct execution *x, const struct stream *s)
{
	if (x->cancelled)
		return;
	snprintf(x->limit, sizeof x->limit, "output_bytes");
	x->limit_value = s->keep;
	execution_cancel(x, "output_limit");
}

static void on_readable(void *owner)
{
	struct execution_pipe *p = owner;

	switch (stream_read(&p->stream)) {
	case STREAM_GOES_ON:
	case STREAM_BROKEN: /* what was read before is kept */
		break;
	case STREAM_FLOOD:
		on_flood(p->execution, &p->stream);
		break;
	}
	if (p->stream.ended)
		close_pipe(p);
	else if (stream_rests(p->stream.little)) {
		loop_want(&p->execution->mcp->loop, &p->source, 0);
		loop_timer_set(&p->execution->mcp->loop, &p->rest, STREAM_REST_MS + 1); /* loop timers have whole milliseconds */
	}
}

static void on_rested(void *owner)
{
	struct execution_pipe *p = owner;

	loop_want(&p->execution->mcp->loop, &p->source, EPOLLIN);
}

/* fd: -1: there is no such stream. */
static void open_pipe(struct execution *x, struct execution_pipe *p, int fd, uint64_t keep)
{
	struct err ignored;

	if (fd < 0)
		return;
	p->stream.fd   = fd;
	p->stream.keep = keep;
	p->source      = (struct loop_source){ .fd = fd, .ready = on_readable, .owner = p };
	p->rest        = (struct loop_timer){ .due = on_rested, .owner = p };
	if (loop_add(&x->mcp->loop, &p->source, &ignored) < 0)
		fd_closep(&p->stream.fd); /* the kernel has no memory; only the output is lost */
}

static void on_writable(void *owner)
{
	struct execution *x = owner;
	ssize_t           n = write(x->input.fd, x->input_text + x->input_at, x->input_len - x->input_at);

	if (n > 0)
		x->input_at += (size_t)n;
	if (x->input_at == x->input_len || (n < 0 && errno != EINTR && errno != EAGAIN)) /* all was written, or the program has closed its end */
		close_input(x);
}

static void open_input(struct execution *x, int fd)
{
	struct err ignored;

	x->input = (struct loop_source){ .fd = fd, .ready = on_writable, .owner = x };
	if (fd < 0 || x->input_len == 0 || loop_add_for(&x->mcp->loop, &x->input, EPOLLOUT, &ignored) < 0)
		fd_closep(&x->input.fd);
}

static void on_asks(void *owner)
{
	struct execution *x = owner;

	loop_timer_set(&x->mcp->loop, &x->asks, 0);
}

static void on_ask_now(void *owner)
{
	elicitation_look(owner);
}

/* Without a bridge the program's calls of tools fail, and the run goes on. */
static void open_tools(struct execution *x, int fd)
{
	x->asks = (struct loop_timer){ .due = on_ask_now, .owner = x };
	if (fd < 0 || !x->mcp->broker)
		fd_closep(&fd);
	else
		(void)!run_tools_open(&x->tools, x->mcp, fd, x->id, on_asks, x);
}

/* --- what brigd says --- */

static void on_started(void *owner, struct run_start *start)
{
	struct execution *x = owner;

	if (x->state != EXECUTION_WAITS)
		return;
	x->state = EXECUTION_RUNS;
	snprintf(x->id, sizeof x->id, "%s", start->run);
	turn_begun(&x->turn, x->id);
	open_pipe(x, &x->out, fd_take(&start->fd[RUN_STDOUT]), start->output_bytes);
	open_pipe(x, &x->err, fd_take(&start->fd[RUN_STDERR]), start->output_bytes);
	open_pipe(x, &x->report, fd_take(&start->fd[RUN_RESULT]), PROGRAM_REPORT_MAX);
	open_input(x, fd_take(&start->fd[RUN_STDIN]));
	open_tools(x, fd_take(&start->fd[RUN_TOOLS]));
	close_fds(x);
	metrics_run_started(x->mcp->metrics);
	if (x->cancelled)
		stop(x, "cancelled");
}

/* The run waits for a place. Its id is kept, so that it can be cancelled meanwhile. */
static void on_waiting(void *owner, const char *run, const char *why)
{
	struct execution *x = owner;

	(void)why;
	if (x->state != EXECUTION_WAITS)
		return;
	snprintf(x->id, sizeof x->id, "%s", run);
	if (x->cancelled)
		stop(x, "cancelled");
}

static void on_limit(void *owner, const char *name, uint64_t value)
{
	struct execution *x = owner;

	snprintf(x->limit, sizeof x->limit, "%s", name);
	x->limit_value = value;
}

/* Figures that brigd cannot know: brig-mcp reads the pipes. */
static void fill_figures(struct execution *x)
{
	const struct stream *out = &x->out.stream, *err = &x->err.stream;

	json_object_set_new(x->record, "stdout_bytes", json_integer((json_int_t)out->seen));
	json_object_set_new(x->record, "stderr_bytes", json_integer((json_int_t)err->seen));
	if (x->tools.mcp)
		json_object_set_new(x->record, "tool_calls", tool_bridge_summary(&x->tools.bridge));
	json_object_set_new(x->record, "truncated", json_boolean(stream_is_truncated(out) || stream_is_truncated(err)));
}

/* The report is hostile: an invalid one is ignored, and the record says so. */
static void take_report(struct execution *x)
{
	const struct stream *s = &x->report.stream;
	struct err           why;

	if (!s->seen)
		return;
	if (stream_is_truncated(s))
		err_set(&why, ERR_PROTOCOL, "it has more than %llu bytes", (unsigned long long)PROGRAM_REPORT_MAX);
	else
		x->program_report = program_report_parse(x->is_report ? PROGRAM_REPORT_run : PROGRAM_REPORT_check, s->data, s->len, &why);
	if (x->program_report)
		x->program_report_bytes = s->len + WIRE_WEIGHT_BYTES * wire_weight(s->data, s->len);
	if (!x->is_report)
		return;
	if (x->program_report)
		program_report_into(x->record, x->program_report);
	else
		program_report_complain(x->record, &why);
}

/* A call in a session that ended by itself after an interrupt gets the reason of the interrupt. */
static void tell_stopped(struct execution *x)
{
	const char *reason = json_string_value(json_object_get(x->record, "exit_reason"));
	bool        by_us  = json_integer_value(json_object_get(x->record, "exit_code")) == INTERRUPTED || strcmp(x->limit, "output_bytes") == 0;

	if (x->stopped && by_us && reason && strcmp(reason, "exited") == 0)
		json_object_set_new(x->record, "exit_reason", json_string(x->stopped));
}

static void on_ended(void *owner, const json_t *event)
{
	struct execution *x          = owner;
	const json_t     *exec_error = json_object_get(event, "exec_error");

	stream_drain(&x->out.stream);
	stream_drain(&x->err.stream);
	stream_drain(&x->report.stream);
	run_tools_close(&x->tools); /* before they are counted */
	x->record = json_copy(json_object_get(event, "record"));
	if (json_is_string(exec_error))
		snprintf(x->exec_error, sizeof x->exec_error, "%s", json_string_value(exec_error));
	fill_figures(x);
	take_report(x);
	tell_stopped(x);
	if (x->state == EXECUTION_WAITS) /* the gauge counts started runs, and metrics_run_ended() takes one away */
		metrics_run_started(x->mcp->metrics);
	metrics_run_ended(x->mcp->metrics, json_string_value(json_object_get(x->record, "exit_reason")), x->profile);
	end(x);
}

static bool turns_again(struct execution *x, const json_t *error)
{
	bool again = turn_again(&x->turn, error);

	if (again)
		brigd_link_forget(x->mcp->brigd_link, &x->question);
	return again;
}

static void on_refused(void *owner, const json_t *answer)
{
	struct execution *x     = owner;
	const json_t     *error = json_object_get(answer, "error");
	const char       *code  = json_string_value(json_object_get(error, "code"));
	bool              busy  = strcmp(code, denial_code_name(DENIAL_busy)) == 0;

	if (x->state != EXECUTION_WAITS || (!x->cancelled && turns_again(x, error)))
		return;
	if (busy && x->cancelled) { /* mostly while it waited for a place */
		fail(x, "cancelled", NULL, "cancelled before it had started");
		return;
	}
	metrics_refused(x->mcp->metrics, code);
	fail(x, code, json_string_value(json_object_get(error, "field")), json_string_value(json_object_get(error, "message")));
}

static void on_answer(void *owner, struct datagram *d)
{
	static const struct run_talk talk = { .waiting = on_waiting, .started = on_started, .limit = on_limit, .ended = on_ended, .refused = on_refused };

	run_talk_handle(&talk, owner, d);
}

/* The connection broke. A run that has not started has had no effect, and the launcher has already asked twice. */
static void on_lost(void *owner, const struct err *why)
{
	struct execution *x = owner;

	if (x->state == EXECUTION_RUNS) {
		stream_drain(&x->out.stream);
		stream_drain(&x->err.stream);
		metrics_run_ended(x->mcp->metrics, "cancelled", x->profile);
	}
	fail(x, why->kind == ERR_BAD_SPEC ? "bad_field" : x->state == EXECUTION_WAITS && why->kind == ERR_MISSING ? "missing" : "lost", NULL, why->text);
}

/* --- asking --- */

static char *copy_bytes(const char *bytes, size_t len)
{
	char *copy = malloc(len + 1);

	return copy ? memcpy(copy, bytes, len) : NULL;
}

static struct execution *create(struct mcp *m, const struct execution_request *order)
{
	struct execution *x = calloc(1, sizeof *x);

	if (!x)
		return NULL;
	x->mcp      = m;
	x->message  = order->message;
	for (size_t i = 0; i < ARRAY_LEN(x->fd); i++)
		x->fd[i] = -1;
	x->input.fd = -1;
	x->asked_ms = loop_now_ms();
	x->out      = (struct execution_pipe){ .stream = { .fd = -1, .lent = true, .to = -1, .tail = x->out.tail, .tail_max = EXECUTION_TAIL }, .execution = x };
	x->err      = (struct execution_pipe){ .stream = { .fd = -1, .lent = true, .to = -1, .tail = x->err.tail, .tail_max = EXECUTION_TAIL }, .execution = x };
	x->report   = (struct execution_pipe){ .stream = { .fd = -1, .lent = true, .to = -1 }, .execution = x };
	x->is_report = order->session || strcmp(json_string_value(json_object_get(order->message, "mode")), "check") != 0;
	x->question  = (struct question){ .answered = on_answer, .lost = on_lost, .owner = x, .message = x->message, .fds = x->fd, .fds_len = 1 };
	TAILQ_INIT(&x->waiters);
	TAILQ_INSERT_TAIL(&m->executions->all, x, link);
	return x;
}

static bool on_file(void *owner, const struct file_entry *entry, const char *name)
{
	(void)owner, (void)entry, (void)name;
	return true;
}

static bool on_file_bytes(void *owner, const char *bytes, size_t len)
{
	(void)owner, (void)bytes, (void)len;
	return true;
}

/* An error is ignored here: if the files could not be put, brigd does not start the run, and its record says why. */
static void on_files_moved(void *owner, const struct err *why)
{
	(void)owner, (void)why;
}

/* The question is not repeated over a new connection: the brigd that went away may have read some of the files. */
static int add_files(struct execution *x, const struct execution_request *order, struct err *e)
{
	static const struct transfer_events events = { .read = { on_file, on_file_bytes }, .ended = on_files_moved };
	int                                 pair[2];

	if (!order->files)
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		free(order->files);
		return err_sys(e, "socketpair");
	}
	x->fd[x->question.fds_len++] = pair[1];
	x->question.repeated = true;
	json_object_set_new(x->message, "files", json_true());
	return transfer_open(&x->transfer, x->mcp, pair[0], order->files, order->files_len, &events, x, e);
}

/* A check reads no files. Fails before add_files(), which takes order->files over. */
static int add_shown(struct execution *x, const struct execution_request *order, struct err *e)
{
	const struct shown *s = &x->mcp->shown;

	if (!x->is_report || shown_copy(s, x->fd + x->question.fds_len, e) < 0) {
		if (x->is_report)
			free(order->files);
		return x->is_report ? -1 : 0;
	}
	shown_into(s, x->message);
	x->question.fds_len += s->n;
	return 0;
}

/* Asks for a run with a jail of its own, which may have to wait for a place. */
static int ask_alone(struct execution *x, const struct execution_request *order, struct err *e)
{
	json_object_set_new(x->message, "wait_ms", json_integer(PLACE_WAIT_MS));
	return add_shown(x, order, e) < 0 || add_files(x, order, e) < 0 ? -1 : brigd_link_ask(x->mcp->brigd_link, &x->question, e);
}

static void on_turn(void *owner, const char *session)
{
	struct execution *x = owner;
	struct err        e;

	json_object_set_new(x->message, "session", json_string(session));
	if (brigd_link_ask(x->mcp->brigd_link, &x->question, &e) < 0)
		fail(x, e.kind == ERR_MISSING ? "missing" : "unavailable", NULL, e.text);
}

static void on_no_turn(void *owner, const struct failure *f)
{
	struct execution *x = owner;

	metrics_refused(x->mcp->metrics, f->code);
	fail(x, f->code, f->field, f->text);
}

static int ask_in_session(struct execution *x, const struct execution_request *order)
{
	static const struct turn_events events = { .go = on_turn, .failed = on_no_turn };

	turn_wait(&x->turn, order->session, order->files, order->files_len, order->timeout_ms, &events, x);
	return 0;
}

static int fill(struct execution *x, const struct execution_request *order, struct err *e)
{
	const char *profile = json_string_value(json_object_get(order->session ? order->session->message : order->message, "profile"));

	snprintf(x->principal, sizeof x->principal, "%s", order->principal);
	x->profile    = strdup(profile ? profile : "");
	x->input_text = order->input ? copy_bytes(order->input, order->input_len) : NULL;
	x->input_len  = order->input ? order->input_len : 0;
	if (!x->profile || (order->input && !x->input_text))
		return err_set(e, ERR_LIMIT, "out of memory");
	x->fd[0] = sealed_open("main.py", order->code, order->code_len, e);
	return x->fd[0] < 0 ? -1 : 0;
}

/* ask_in_session() and ask_alone() take order->files over, even if they fail. */
static int begin(struct execution *x, const struct execution_request *order, struct err *e)
{
	if (fill(x, order, e) == 0)
		return order->session ? ask_in_session(x, order) : ask_alone(x, order, e);
	free(order->files);
	return -1;
}

struct execution *execution_start(struct mcp *m, const struct execution_request *order, struct err *e)
{
	struct execution *x = create(m, order);

	if (!x) {
		json_decref(order->message);
		free(order->files);
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	if (begin(x, order, e) == 0)
		return x;
	destroy(x);
	return NULL;
}

/* --- looking --- */

static const char *last_line(const char *bytes, size_t n, size_t *len)
{
	const char *end = bytes + n, *from;

	while (end > bytes && (end[-1] == '\n' || end[-1] == '\r'))
		end--;
	for (from = end; from > bytes && from[-1] != '\n' && from[-1] != '\r'; from--)
		;
	*len = (size_t)(end - from);
	return from;
}

static const char *last_of(const struct stream *s, size_t *len)
{
	return s->tail_len ? last_line(s->tail, s->tail_len, len) : last_line(s->data ? s->data : "", s->len, len);
}

const char *execution_last_line(const struct execution *x, size_t *len)
{
	const char *line = last_of(&x->out.stream, len);

	return *len ? line : last_of(&x->err.stream, len);
}
