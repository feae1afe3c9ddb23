/*
 * session_call.c - a call in a session while it is under way: its clocks, reports of the session server, its end
 */
#define _GNU_SOURCE
#include "session.h"

#include "clock.h"
#include "fd.h"
#include "packet.h"
#include "run_record.h"
#include "served_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
	START_MS_MAX     = 10000, /* until the server must have started it */
	INTERRUPT_MS_MAX = 2000,  /* until an interrupted interpreter is killed */
	KILL_MS          = 500,   /* until the server is asked again: it may not have taken the first message */
	KILLS_MAX        = 10,
	VICTIM_MS        = 50,    /* for the message that memory was the reason */
	STARTED_MAX      = 512,
};

/* --- messages to the session server --- */

static void call_send_op(struct session_call *call, const char *op)
{
	/* if the server does not take the message, a timer kills the call later */
	(void)!session_send_message(call->session, json_pack("{ss sI}", "op", op, "call", (json_int_t)call->number),
				    NULL, 0);
}

static void call_set_timer(struct session_call *call, double ms)
{
	loop_timer_set(&call->session->run->server->loop, &call->timer, (int64_t)(ms > 0 ? ms : 0) + 1);
}

/* --- its end --- */

static const char *context_state_name(const struct session_call *call)
{
	bool is_new = call->interpreter == CALL_STARTS_NEW;

	if (call->interpreter == CALL_LOSES)
		return "lost";
	if (!call->context)
		return is_new ? "new" : "kept";
	if (!is_new && call->context->is_there)
		return "kept";
	/* lost: the old one was, and no new one could be started */
	return !call->context->was_lost ? "new" : is_new ? "reset" : "lost";
}

static void call_fill_record(const struct session_call *call, struct record *record, struct run_result *end)
{
	const struct session *s           = call->session;
	const bool            has_started = call->clock.started > 0;

	*end             = s->set_up;
	end->reason      = (enum exit_reason)call->reason;
	end->wait_status = call->reason == EXIT_exited || call->reason == EXIT_signaled ? call->status : -1;
	end->started_at  = has_started ? call->started_at : -1;
	end->figures.wall_ms  = has_started ? call->ended_ms - call->clock.started : -1;
	end->figures.setup_ms = has_started ? call->clock.started - call->asked_ms : -1;
	end->figures.cpu_ms   = call->cpu_ms;
	end->exec_errno  = call->exec_errno;
	end->why         = call->why;
	end->warm        = false;
	*record          = run_record_make(s->run, call->id, end);
	record->session.is_there     = true;
	record->session.id           = s->run->id;
	record->session.context      = call->context ? call->context->name : NULL;
	record->session.state        = context_state_name(call);
	record->session.age_ms       = (int64_t)(call->ended_ms - s->opened_ms);
	record->session.idle_left_ms = s->state == SESSION_OPEN ? (int64_t)s->limits.idle_ms : 0;
}

static void call_send_ended(const struct session_call *call)
{
	struct served_net *net = &call->session->run->net;
	struct record      record;
	struct run_result  end;
	struct net_report  network;
	char               text[RUN_RECORD_ENDED_MAX];
	struct json_text   t = json_text_in(text, sizeof text);

	call_fill_record(call, &record, &end);
	/* each of several calls at the same time reports all that changed while it ran */
	if (served_net_was_asked_for(net)) {
		served_net_read_report_since(net, call->net_mark, &network);
		record.network = &network;
	}
	attempt_write_call_ended(call, &record);
	if (!call->connection)
		return;
	run_record_put_ended_event(&t, &record, call->tag);
	json_text_finish(&t);
	connection_send_text(call->connection, t.to, t.len, NULL, 0);
}

static void call_report_and_free(struct session_call *call)
{
	struct session *s       = call->session;
	bool            is_lost = call->interpreter == CALL_LOSES;

	loop_timer_clear(&s->run->server->loop, &call->timer);
	if (call->context) {
		call->context->call      = NULL;
		call->context->is_there &= !is_lost;
	}
	call_send_ended(call);
	if (call->context)
		call->context->was_lost = is_lost || (call->context->was_lost && !(call->clock.started > 0));
	fd_closep(&call->tools);
	if (call->connection) {
		if (call->with_tools)
			connection_remember_ended_run(call->connection, call->id, call->calls);
		call->connection->runs--;
		call->connection->heard_ms = call->ended_ms;
	}
	TAILQ_REMOVE(&s->calls, call, link);
	s->calls_len--;
	free(call->net_mark);
	free(call);
	session_note_use(s);
}

/* The first reason holds. */
static void call_set_reason_once(struct session_call *call, enum exit_reason reason)
{
	if (call->reason == CALL_UNDECIDED)
		call->reason = (int)reason;
}

/*
 * RLIMIT_CPU counts ticks of the clock, of which a process may have more than its time: its signal may come as early as
 * this. Earlier a program has sent it to itself.
 */
#define CPU_TICKS_SHARE 0.5

/*
 * The process that watches the session reports over another socket that it has killed a process for memory: after a
 * SIGKILL this waits for that message.
 */
static void call_end_by_status(struct session_call *call)
{
	bool killed            = call->status >= 0 && WIFSIGNALED(call->status);
	bool may_be_oom_target = call->reason == CALL_UNDECIDED && killed && WTERMSIG(call->status) == SIGKILL;

	call->ended_ms = clock_ms(CLOCK_MONOTONIC);
	if (killed &&
	    call->cpu_ms >= (double)call->limits.cpu_ms * (WTERMSIG(call->status) == SIGXCPU ? CPU_TICKS_SHARE : 1))
		call_set_reason_once(call, EXIT_timeout_cpu);
	call_set_reason_once(call, killed ? EXIT_signaled : EXIT_exited);
	call->state = CALL_ENDED;
	if (may_be_oom_target && call->session->victims == call->victims) {
		call_set_timer(call, VICTIM_MS);
		return;
	}
	if (may_be_oom_target)
		call->reason = EXIT_oom;
	call_report_and_free(call);
}

void session_call_end_and_free(struct session_call *call, enum exit_reason reason)
{
	call->interpreter = CALL_LOSES;
	if (call->state == CALL_ENDED) /* it waits for the reason: call_end_by_status() */
		call->reason = (int)reason;
	else
		call_set_reason_once(call, reason);
	call->ended_ms = clock_ms(CLOCK_MONOTONIC);
	call_report_and_free(call);
}

/* --- its clocks --- */

static void call_kill(struct session_call *call)
{
	call->state = CALL_KILLED;
	call->kills++;
	call_send_op(call, "kill");
	call_set_timer(call, KILL_MS);
}

void session_call_interrupt_or_kill(struct session_call *call, enum exit_reason reason)
{
	/* ENDED: only the reason is waited for, see call_end_by_status() */
	if (call->state == CALL_ENDED || (call->reason != CALL_UNDECIDED && call->state == CALL_KILLED))
		return;
	call_set_reason_once(call, reason);
	if (!call->context || call->state != CALL_RUNS || reason == EXIT_cancelled) {
		call_kill(call);
		return;
	}
	call->state = CALL_INTERRUPTED;
	call_send_op(call, "interrupt");
	call_set_timer(call, INTERRUPT_MS_MAX);
}

void session_call_interrupt(struct session_call *call)
{
	if (call->state == CALL_RUNS)
		call_send_op(call, "interrupt");
}

void session_calls_send_terminal_sizes(struct session *s)
{
	struct session_call *call;
	bool                 is_full = false;

	TAILQ_FOREACH(call, &s->calls, link) {
		if (call->has_size && call->state == CALL_RUNS) {
			json_t *message = json_pack("{ss sI s[II]}", "op", "resize", "call", (json_int_t)call->number,
						    "size", (json_int_t)call->rows, (json_int_t)call->columns);

			call->has_size = session_send_message(s, message, NULL, 0) == -EAGAIN;
		} else {
			call->has_size = false;
		}
		is_full |= call->has_size;
	}
	if (s->source.fd < 0 || is_full == s->awaits_room)
		return;
	s->awaits_room = is_full;
	loop_set_events(&s->run->server->loop, &s->source, EPOLLIN | (is_full ? EPOLLOUT : 0));
}

void session_call_resize_terminal(struct session_call *call, const struct protocol_request *request)
{
	call->rows     = request->rows;
	call->columns  = request->columns;
	call->has_size = true;
	session_calls_send_terminal_sizes(call->session);
}

static void call_set_wall_timer(struct session_call *call)
{
	double now = clock_ms(CLOCK_MONOTONIC);

	call_set_timer(call, wall_clock_end(&call->clock, &call->limits, now) - now);
}

void session_call_set_waiting(struct session_call *call, bool waits)
{
	wall_clock_set_waiting(&call->clock, waits, clock_ms(CLOCK_MONOTONIC));
	if (call->state == CALL_RUNS)
		call_set_wall_timer(call);
}

static void call_send_limit(struct session_call *call, enum limit_id limit)
{
	const struct field *f = &limits_fields[limit];

	if (call->connection)
		connection_send(
			call->connection,
			protocol_limit_event(call->id, call->tag, f->name, limits_value(&call->limits, f), true), NULL,
			0);
}

/* The session server does not end the call. */
static void end_session_of_stuck_call(struct session_call *call)
{
	struct session *s = call->session;

	snprintf(s->why, sizeof s->why, "a call in it could not be ended");
	run_request_cancel(&s->run->run, EXIT_cancelled);
}

static void call_on_timer(void *owner)
{
	struct session_call *call = owner;
	double               now  = clock_ms(CLOCK_MONOTONIC);

	switch (call->state) {
	case CALL_RUNS:
		if (wall_clock_end(&call->clock, &call->limits, now) > now) {
			call_set_wall_timer(call);
			return;
		}
		call_send_limit(call, LIMIT_wall_ms);
		session_call_interrupt_or_kill(call, EXIT_timeout_wall);
		return;
	case CALL_INTERRUPTED:
		call_kill(call);
		return;
	case CALL_KILLED:
		if (call->kills < KILLS_MAX) {
			call_kill(call);
			return;
		}
		end_session_of_stuck_call(call);
		return;
	case CALL_ASKED:
		end_session_of_stuck_call(call);
		return;
	case CALL_ENDED:
		if (call->session->victims != call->victims)
			call->reason = EXIT_oom;
		call_report_and_free(call);
		return;
	}
}

void session_call_set_start_timer(struct session_call *call)
{
	call->timer = (struct loop_timer){ .due = call_on_timer, .owner = call };
	call_set_timer(call, START_MS_MAX);
}

/* --- messages of the session server about it --- */

static bool is_pipe_end(int fd, int mode)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && (fcntl(fd, F_GETFL) & O_ACCMODE) == mode;
}

static void call_send_started(struct session_call *call, int *streams, size_t n)
{
	char             text[STARTED_MAX];
	struct json_text t = json_text_in(text, sizeof text);
	int              fds[SESSION_FDS_MAX + 1];

	memcpy(fds, streams, n * sizeof *fds);
	if (call->with_tools)
		fds[n++] = call->tools;
	protocol_put_started(&t, call->id, call->tag, call->with_stdin, call->context != NULL, call->with_tools,
			     call->limits.output_bytes);
	json_text_finish(&t);
	if (call->connection)
		connection_send_text(call->connection, t.to, t.len, fds, n);
	fd_closep(&call->tools);
}

static bool call_on_started(struct session_call *call, const struct session_message *message, int *fds, size_t n)
{
	if (call->clock.started > 0 || (call->state != CALL_ASKED && call->state != CALL_KILLED))
		return false;
	/* Nothing but ends of pipes gets from the jail to a client. */
	if (n != (size_t)2 + (call->context || call->with_stdin) || !is_pipe_end(fds[0], O_RDONLY) ||
	    !is_pipe_end(fds[1], O_RDONLY) || (n == 3 && !is_pipe_end(fds[2], call->context ? O_RDONLY : O_WRONLY)))
		return false;
	if (call->context && message->flags & SESSION_FRESH)
		call->interpreter = CALL_STARTS_NEW;
	call->clock.started = clock_ms(CLOCK_MONOTONIC);
	call->started_at    = clock_ms(CLOCK_REALTIME) / 1000;
	call_send_started(call, fds, n);
	if (call->context)
		call->context->is_there = true;
	if (call->state == CALL_KILLED)
		return true;
	call->state = CALL_RUNS;
	call_set_wall_timer(call);
	return true;
}

static bool call_on_ended(struct session_call *call, const struct session_message *message)
{
	if (!(call->clock.started > 0))
		return false;
	call->status  = message->value & 0xffff;
	call->cpu_ms  = (double)(message->cpu_ns < (1ull << 62) ? message->cpu_ns : 0) / 1e6;
	if (call->context && message->flags & SESSION_GONE)
		call->interpreter = CALL_LOSES;
	call_end_by_status(call);
	return true;
}

/* What the errno that the session server reported most likely means, for people. */
static const char *start_failure_text(const struct session_call *call, bool executes, uint32_t flags, int errnum)
{
	if (executes)
		return "the program (in the rootfs)";
	if (call->context && flags & SESSION_NO_CWD)
		return "the directory in which the call starts";
	if (call->context)
		return "the interpreter could not be started";
	if (!call->terminal)
		return "the command could not be started";
	if (errnum == ENOSPC)
		return "no terminal is left in the session, programs of it have them all";
	/* EINVAL: what unlockpt() makes of ENOTTY */
	return errnum == ENOTTY || errnum == EPERM || errnum == EINVAL
		       ? "no terminal: the policy of the profile does not allow it"
		       : "the terminal could not be made";
}

static bool call_on_start_failed(struct session_call *call, const struct session_message *message)
{
	bool executes = !call->context && !(message->flags & SESSION_NO_EXEC);

	if (message->value <= 0 || message->value > 4095)
		return false;
	call_set_reason_once(call, EXIT_setup_failed);
	errno            = message->value;
	call->ended_ms   = clock_ms(CLOCK_MONOTONIC);
	call->exec_errno = executes ? message->value : 0;
	err_sys(&call->why, "%s", start_failure_text(call, executes, message->flags, message->value));
	call_report_and_free(call);
	return true;
}

static bool call_on_cpu_used_up(struct session_call *call)
{
	bool is_first = !call->cpu_is_used_up;

	call->cpu_is_used_up = true;
	if (call->state != CALL_RUNS)
		/* the server reports it once: a flood would keep the server from other work */
		return call->clock.started > 0 && is_first;
	call_send_limit(call, LIMIT_cpu_ms);
	session_call_interrupt_or_kill(call, EXIT_timeout_cpu);
	return true;
}

bool session_call_handle_message(struct session *s, const struct session_message *message, int *fds, size_t n)
{
	struct session_call *call;

	TAILQ_FOREACH(call, &s->calls, link)
		if (call->number == message->call && call->state != CALL_ENDED)
			break;
	if (!call)
		return false;
	if (message->kind == SESSION_STARTED)
		return call_on_started(call, message, fds, n);
	if (n)
		return false;
	if (message->kind == SESSION_ENDED)
		return call_on_ended(call, message);
	return message->kind == SESSION_FAILED ? call_on_start_failed(call, message) : call_on_cpu_used_up(call);
}

/* --- all of them --- */

struct session_call *session_call_find(const struct server *d, const char *id, uid_t uid)
{
	struct session      *s;
	struct session_call *call;

	TAILQ_FOREACH(s, &d->sessions, link)
		TAILQ_FOREACH(call, &s->calls, link)
			if (strcmp(call->id, id) == 0)
				return peer_is_shown_to(&call->peer, uid) ? call : NULL;
	return NULL;
}

void session_calls_drop_connection(struct server *d, struct connection *c)
{
	struct session      *s;
	struct session_call *call, *next;

	TAILQ_FOREACH(s, &d->sessions, link)
		for (call = TAILQ_FIRST(&s->calls); call; call = next) {
			next = TAILQ_NEXT(call, link);
			if (call->connection != c)
				continue;
			call->connection = NULL;
			if (call->state != CALL_ENDED)
				session_call_interrupt_or_kill(call, EXIT_client_gone);
		}
}
