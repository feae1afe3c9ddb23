#define _GNU_SOURCE
#include "service_loop.h"

#include "clock.h"
#include "connection.h"
#include "notify.h"
#include "queue.h"
#include "reload.h"
#include "served_run.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TICK_MS = 500 };

struct service_loop {
	struct server     *server;
	struct loop_source listener, signals, lifeline;
	bool               listens, asked_to_end, monitor_is_gone;
	double             tick_ms; /* CLOCK_MONOTONIC: of the next tick */
};

static int set_listening(struct service_loop *r, bool listens, struct err *e)
{
	bool was = r->listens;

	r->listens = listens;
	if (listens && !was)
		return loop_add(&r->server->loop, &r->listener, e);
	if (!listens && was)
		loop_remove(&r->server->loop, &r->listener);
	return 0;
}

/* Without a free descriptor no client can be accepted: clients wait in the socket's backlog until the next tick. */
static void accept_client(void *owner)
{
	struct service_loop *r    = owner;
	int                  sock = accept4(r->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct denial        why;
	struct err           e;

	if (sock >= 0) {
		(void)!server_admit_client(r->server, sock, &why);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
		log_line(&r->server->log, "no client can be accepted now: %s", strerror(errno));
		(void)!set_listening(r, false, &e);
	}
}

static void handle_service_signal(void *owner)
{
	struct service_loop    *r = owner;
	struct signalfd_siginfo info;

	if (read(r->signals.fd, &info, sizeof info) != sizeof info)
		return;
	if (info.ssi_signo == SIGHUP)
		reload_request_reading(r->server->reload);
	else
		r->asked_to_end = true;
}

static void handle_monitor_readable(void *owner)
{
	struct service_loop  *r = owner;
	const struct backend *b = &r->server->backend;

	r->monitor_is_gone |= !b->on_readable(b->self);
}

/*
 * Serves what is ready. At most twice a second it does work that no event triggers, because that looks at every
 * connection.
 */
static int serve_ready_events(struct service_loop *r, struct err *e)
{
	struct connection *c, *next;
	double             now;

	if (loop_turn(&r->server->loop, TICK_MS, e) < 0)
		return -1;
	now = clock_ms(CLOCK_MONOTONIC);
	if (now < r->tick_ms)
		return 0;
	r->tick_ms = now + TICK_MS;
	for (c = LIST_FIRST(&r->server->connections); c; c = next) {
		next = LIST_NEXT(c, link);
		if (c->runs == 0 && now - c->heard_ms > IDLE_MS_MAX)
			connection_close(c);
	}
	return r->server->is_ending ? 0 : set_listening(r, true, e);
}

/* Ends all runs, and serves until none is left or ENDING_MS_MAX have passed. */
static int cancel_all_runs_and_wait(struct service_loop *r, struct err *e)
{
	struct served_run *run;
	double             deadline_ms = clock_ms(CLOCK_MONOTONIC) + ENDING_MS_MAX;

	r->server->is_ending = true;
	(void)!set_listening(r, false, e);
	queue_refuse_all(r->server);
	TAILQ_FOREACH(run, &r->server->runs, link)
		run_request_cancel(&run->run, EXIT_cancelled);
	while (r->server->runs_len && clock_ms(CLOCK_MONOTONIC) < deadline_ms)
		if (serve_ready_events(r, e) < 0)
			return -1;
	return 0;
}

static int serve_until_signal(struct service_loop *r, struct err *e)
{
	while (!r->asked_to_end && !r->monitor_is_gone)
		if (serve_ready_events(r, e) < 0)
			return -1;
	if (r->monitor_is_gone)
		loop_remove(&r->server->loop, &r->lifeline); /* it stays readable for ever */
	return r->monitor_is_gone ? err_set(e, ERR_SETUP, "the monitor is gone") : 0;
}

static int add_loop_sources(struct service_loop *r, const struct service_loop_fds *at, struct err *e)
{
	struct server *d = r->server;

	r->listener = (struct loop_source){ at->listener, accept_client, r };
	r->signals  = (struct loop_source){ at->signals, handle_service_signal, r };
	r->lifeline = (struct loop_source){ at->monitor, handle_monitor_readable, r };
	if (set_listening(r, true, e) < 0 || loop_add(&d->loop, &r->signals, e) < 0)
		return -1;
	return loop_add(&d->loop, &r->lifeline, e);
}

int service_loop_run(struct server *d, const struct service_loop_fds *at, struct err *e)
{
	struct service_loop r = { .server = d };
	struct err          ignored;
	int                 done, over;

	if (add_loop_sources(&r, at, e) < 0)
		return -1;
	systemd_notify_send(at->notify, "READY=1");
	done = serve_until_signal(&r, e);
	systemd_notify_send(at->notify, "STOPPING=1");
	over = cancel_all_runs_and_wait(&r, done < 0 ? &ignored : e);
	served_runs_report_all_cancelled(d);
	return done < 0 ? -1 : over;
}
