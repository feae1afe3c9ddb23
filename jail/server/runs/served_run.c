#define _GNU_SOURCE
#include "served_run.h"

#include "attempt.h"
#include "clock.h"
#include "fd.h"
#include "queue.h"
#include "run_spec.h"
#include "run_record.h"
#include "session.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- events --- */

enum { STARTED_MAX = 512, YOUNG_MS = 50 };

static void served_run_send_event(struct served_run *r, struct json_text *event, const int *fds, size_t n)
{
	json_text_finish(event);
	if (r->connection)
		connection_send_text(r->connection, event->to, event->len, fds, n);
}

static void close_streams(int streams[PIPES_MAX])
{
	for (int i = 0; i < PIPES_MAX; i++)
		fd_closep(&streams[i]);
}

static void served_run_on_started(struct served_run *r, int streams[PIPES_MAX])
{
	char             text[STARTED_MAX];
	struct json_text t = json_text_in(text, sizeof text);
	int              fds[PIPES_MAX + 1];
	size_t           n = pipes_count(r->with_stdin, r->with_result);

	if (r->session) {
		close_streams(streams); /* each of its calls has its own */
		session_on_run_started(r->session, fd_take(&r->tools));
		return;
	}
	memcpy(fds, streams, n * sizeof *fds);
	if (r->with_tools)
		fds[n++] = r->tools;
	protocol_put_started(&t, r->id, r->tag, r->with_stdin, r->with_result, r->with_tools, r->limits.output_bytes);
	served_run_send_event(r, &t, fds, n);
	close_streams(streams);
	fd_closep(&r->tools);
}

static void served_run_destroy(struct served_run *r)
{
	struct server *d = r->server;

	if (r->connection && r->with_tools)
		connection_remember_ended_run(r->connection, r->id, r->calls);
	served_net_release(&r->net);
	fd_closep(&r->tools);
	quota_release(&d->quota, r->peer.uid, &r->part);
	if (r->connection) {
		r->connection->runs--;
		r->connection->heard_ms = clock_ms(CLOCK_MONOTONIC); /* it was busy until now */
	}
	TAILQ_REMOVE(&d->runs, r, link);
	d->runs_len--;
	profile_release(r->profile);
	free(r);
	queue_retry_now(d);
}

/*
 * *network must live as long as *record. brig-proxy gets a message of the end only after the client: after
 * served_net_mark_over() the run reaches nothing more.
 */
static void record_add_network(struct served_run *r, struct record *record, struct net_report *network)
{
	struct server_counts *counts = &r->server->counts;

	if (!served_net_was_asked_for(&r->net))
		return;
	served_net_mark_over(&r->net);
	served_net_read_report(&r->net, network);
	record->network = network;
	counts->network.connections += network->connections;
	counts->network.refused += network->refused;
	counts->network.failed += network->failed;
	counts->network.bytes_in += network->bytes_in;
	counts->network.bytes_out += network->bytes_out;
}

static void served_run_on_ended(struct served_run *r, const struct run_result *end)
{
	struct record    record;
	struct net_report network;
	char             text[RUN_RECORD_ENDED_MAX];
	struct json_text t = json_text_in(text, sizeof text);

	loop_remove(&r->server->loop, &r->source);
	run_close(&r->run);
	record = run_record_make(r, r->id, end);
	record_add_network(r, &record, &network);
	r->server->counts.ended[end->reason]++;
	figures_add_ended_run(&r->server->figures, r->profile->name, end);
	attempt_write_run_ended(r, &record);
	if (r->session)
		record.session_end = session_on_run_ended(r->session, end->reason);
	run_record_put_ended_event(&t, &record, r->tag);
	served_run_send_event(r, &t, NULL, 0);
	served_run_destroy(r);
}

static void served_run_on_readable(void *owner)
{
	struct served_run *r = owner;
	struct run_result     end;
	int                streams[PIPES_MAX];

	switch (run_receive_event(&r->run, streams, &end)) {
	case RUN_GOES_ON:
		return;
	case RUN_STARTED:
		served_run_on_started(r, streams);
		return;
	case RUN_SESSION:
		if (r->session)
			session_on_run_set_up(r->session, &end, r->run.victims);
		return;
	case RUN_LIMIT:
		if (r->connection)
			connection_send(r->connection,
					protocol_limit_event(r->id, r->tag, limits_fields[end.hit[0].limit].name,
						       (uint64_t)end.hit[0].value, true),
					NULL, 0);
		return;
	case RUN_ENDED:
		served_run_on_ended(r, &end);
		return;
	}
}

/* --- life --- */

/* The backend's error as a denial. */
static int deny_backend_error(const struct err *e, struct denial *why)
{
	static const enum denial_code codes[] = {
		[ERR_DENIED] = DENIAL_denied, [ERR_MISSING] = DENIAL_missing,     [ERR_LIMIT] = DENIAL_busy,
		[ERR_SETUP]  = DENIAL_broken, [ERR_BAD_SPEC] = DENIAL_bad_field, [ERR_PROTOCOL] = DENIAL_unavailable,
		[ERR_BROKEN] = DENIAL_broken,
	};

	deny_err(why, codes[e->kind], NULL, e);
	why->retry_after_ms = why->code == DENIAL_busy ? QUOTA_RETRY_MS : 0;
	return -1;
}

static int start_in_backend(struct served_run *r, const struct protocol_request *request, struct run_plan *plan,
			    const int *fds, int tools, int streams[PIPES_MAX], struct err *e)
{
	bool               has_code     = request->kind == REQUEST_run;
	/* a launcher may not remove main.py from the cell */
	bool               has_own_code = r->session && !r->server->is_private;
	bool               has_plans    = (has_code || has_own_code) && plan->own_code >= 0;
	int                code_fd      = has_plans ? plan->own_code : has_code ? fds[0] : -1;
	struct launch_args spec         = {
		.profile     = &plan->profile->profile,
		.policy      = &plan->profile->policy,
		.number      = plan->profile->index,
		.limits      = &r->limits,
		.exec_args   = &plan->exec_args,
		.exec_text   = plan->exec_text,
		.code_fd     = code_fd,
		.code_len    = (uint32_t)plan->code.len,
		.code        = plan->code.text,
		.shown       = (const char *const *)plan->shown,
		.shown_fd    = fds + has_code,
		.shown_len   = plan->shown_len,
		.files_fd    = request->has_files ? fds[has_code + plan->shown_len] : -1,
		.tools_fd    = tools,
		.listeners   = plan->profile->is_private && plan->net_rules ? &plan->listeners : NULL,
		.trust_fd    = plan->net.trust_fd,
		.stdin_pipe  = request->wants_stdin,
		.result_pipe = r->with_result,
		/* a zygote's fork may have another version of a module imported already */
		.cold        = request->cold || request->has_layer || request->mode == MODE_resolve,
		.terminals   = request->terminal,
	};

	if (backend_start(&r->server->backend, &r->run, &spec, streams, e) < 0)
		return -1;
	r->source = (struct loop_source){ r->run.sock, served_run_on_readable, r };
	if (loop_add(&r->server->loop, &r->source, e) == 0)
		return 0;
	run_close(&r->run); /* this closes the socket, and the process that watches the run ends it */
	close_streams(streams);
	backend_settle(&r->server->backend);
	return -1;
}

/*
 * No descriptor of the client enters a jail: the server makes the socket to its tools, one end for the program and one
 * for the client.
 */
static int start_with_tool_socket(struct served_run *r, const struct protocol_request *request, struct run_plan *plan,
				  const int *fds, int streams[PIPES_MAX], struct err *e)
{
	int pair[2], done;

	if (!request->has_tools && !r->session)
		return start_in_backend(r, request, plan, fds, -1, streams, e);
	if (socketpair(AF_UNIX, (r->session ? SOCK_SEQPACKET : SOCK_STREAM) | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "the socket for tools");
	r->tools = pair[0];
	done     = start_in_backend(r, request, plan, fds, pair[1], streams, e);
	close(pair[1]);
	if (done < 0)
		fd_closep(&r->tools);
	return done;
}

/* In a service, all cells of a profile that may have a network listen; a private cell listens if its run has rules. */
static void start_run_network(struct served_run *r, struct run_plan *plan)
{
	const bool has_listeners =
		plan->profile->is_private ? plan->net_rules != NULL :
			net_policy_allows_any_host(plan->profile->profile.net);
	const struct served_net_request request       = {
		.number        = ++r->server->networks,
		.user          = r->peer.uid,
		.profile       = plan->profile,
		.limits        = &r->limits,
		.has_listeners = has_listeners,
		.rules         = plan->net_rules,
		.config        = plan->net.proxy_fd,
	};

	served_net_start(&r->net, &r->server->loop, &r->server->backend, &r->run, &request);
	plan->net_rules = NULL;
}

/* For a run that was not started. */
static void served_run_free_unstarted(struct served_run *r)
{
	if (r->session)
		session_free(r->session);
	free(r);
}

/* --- what runs, for people --- */

/* The first line with more than a comment: where a program begins to do something. */
static const char *find_first_code_line(const struct program_text *code, size_t *n)
{
	const char *line = code->text, *end = code->text + code->len, *next;

	for (; line < end; line = next) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));

		next = stop ? stop + 1 : end;
		while (line < next && (*line == ' ' || *line == '\t' || *line == '\r'))
			line++;
		*n = (size_t)((stop ? stop : end) - line);
		if (line < (stop ? stop : end) && *line != '#')
			return line;
	}
	*n = 0;
	return "";
}

static void program_append(struct served_run *r, const char *text, size_t n)
{
	size_t at = strlen(r->program), free_bytes = sizeof r->program - 1 - at;

	memcpy(r->program + at, text, n < free_bytes ? n : free_bytes);
}

static void program_append_words(struct served_run *r, const json_t *words)
{
	for (size_t i = 0; i < json_array_size(words); i++) {
		program_append(r, " ", *r->program != 0);
		program_append(r, json_string_value(json_array_get(words, i)),
			       json_string_length(json_array_get(words, i)));
	}
}

static void set_program_description(struct served_run *r, const struct protocol_request *request,
				    const struct program_text *code)
{
	const char *line;
	size_t      n;

	if (request->kind == REQUEST_open) {
		program_append(r, "session ", request->name ? 8 : 7);
		program_append(r, request->name ? request->name : "", request->name ? strlen(request->name) : 0);
	} else if (request->kind == REQUEST_exec) {
		program_append_words(r, request->argv);
	} else if (request->main) {
		program_append(r, request->main, strlen(request->main));
		program_append_words(r, request->args);
	} else {
		line = find_first_code_line(code, &n);
		program_append(r, line, n);
	}
	text_make_plain(r->program);
}

int served_run_start(struct connection *c, const struct protocol_request *request, struct run_plan *plan,
		     const char *id, const int *fds, struct denial *why)
{
	int                streams[PIPES_MAX] = { -1 };
	double             now = clock_ms(CLOCK_MONOTONIC);
	struct served_run *r   = calloc(1, sizeof *r);
	struct err         e;

	if (!r)
		return deny(why, DENIAL_broken, NULL, "out of memory");
	*r = (struct served_run){
		.server      = c->server,
		.connection  = c,
		.peer        = c->peer,
		.profile     = plan->profile,
		.limits      = plan->limits,
		.tag         = request->tag,
		.with_stdin  = request->wants_stdin,
		.with_result = request->kind == REQUEST_run && request->mode != MODE_script &&
			       request->mode != MODE_resolve,
		.with_tools  = request->has_tools,
		.tools       = -1,
		.asked_ms    = now,
		.part        = { plan->limits.memory_bytes, request->kind == REQUEST_open },
		.run         = { .sock = -1 },
		.net         = SERVED_NET_NONE,
	};
	memcpy(r->id, id, sizeof r->id);
	set_program_description(r, request, &plan->code);
	if (request->kind == REQUEST_open && !(r->session = session_new(r, request))) {
		free(r);
		return deny(why, DENIAL_broken, NULL, "out of memory");
	}
	if (quota_reserve(&c->server->quota, &c->access_rule->quota, c->peer.uid, &r->part, now, why) < 0) {
		served_run_free_unstarted(r);
		return -1;
	}
	if (start_with_tool_socket(r, request, plan, fds, streams, &e) < 0) {
		quota_refund(&c->server->quota, c->peer.uid, &r->part);
		served_run_free_unstarted(r);
		return deny_backend_error(&e, why);
	}
	TAILQ_INSERT_TAIL(&c->server->runs, r, link);
	c->server->runs_len++;
	c->server->counts.started++;
	profile_acquire(r->profile);
	c->runs++;
	if (r->session) {
		(void)session_send_lifetime(r->session); /* the socket is empty yet */
		session_start_memory_timer(c->server);
	}
	if (streams[0] >= 0)
		served_run_on_started(r, streams);
	/* after the client has the event: most programs have started by now, and what they send waits */
	start_run_network(r, plan);
	backend_settle(&c->server->backend);
	if (c->server->audit)
		/* the run has started: it does not wait for the digest */
		attempt_keep_request(&r->attempt, request, &plan->code);
	return 0;
}

void served_runs_report_all_cancelled(struct server *d)
{
	struct run_result     end = RUN_RESULT_NONE;
	struct served_run *r;

	end.reason = EXIT_cancelled;
	err_set(&end.left, ERR_SETUP, "the service ended before the run was over");
	while ((r = TAILQ_FIRST(&d->runs)))
		served_run_on_ended(r, &end);
}

void served_run_set_waiting(struct served_run *r, bool waits)
{
	if (r->is_waiting != waits)
		run_set_wall_clock_paused(&r->run, waits);
	r->is_waiting = waits;
}

size_t served_runs_count_young(const struct server *d, uid_t uid, double now_ms)
{
	struct served_run *r;
	size_t             n = 0;

	TAILQ_FOREACH_REVERSE(r, &d->runs, run_list, link) {
		if (now_ms - r->asked_ms > YOUNG_MS)
			break;
		n += r->peer.uid == uid;
	}
	return n;
}

struct served_run *served_run_find(const struct server *d, const char *id)
{
	struct served_run *r;

	TAILQ_FOREACH(r, &d->runs, link)
		if (strcmp(r->id, id) == 0)
			return r;
	return NULL;
}

void served_runs_drop_connection(struct server *d, struct connection *c)
{
	struct served_run *r;

	TAILQ_FOREACH(r, &d->runs, link) {
		if (r->connection != c)
			continue;
		r->connection = NULL;
		if (!r->session || !r->session->stays)
			run_request_cancel(&r->run, EXIT_client_gone);
	}
}
