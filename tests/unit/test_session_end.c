/* test_session_end.c - sessions at their end: what their calls report, and what a session server can still send */
#include "clock.h"
#include "fd.h"
#include "served_run.h"
#include "session.h"
#include "tap.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>

static struct server            server;
static struct served_profile    profile;
static struct served_run        run;
static struct connection        client;
static int                      client_end = -1, session_server = -1;

/* A session whose server is this test: its socket is session_server. */
static struct session *open_session(void)
{
	struct protocol_request request = { .kind = REQUEST_open };
	int                     pair[2];
	struct err              e;
	struct session         *s;

	server.gone = calloc(SESSION_GONE_MAX, sizeof *server.gone);
	TAILQ_INIT(&server.sessions);
	if (loop_open(&server.loop, &e) < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
		exit(1);
	client     = (struct connection){ .server = &server, .source = { .fd = pair[0] }, .runs = 1 };
	client_end = pair[1];
	TAILQ_INIT(&client.unsent);
	run = (struct served_run){ .server  = &server,
				   .profile = &profile,
				   .run     = { .sock = -1 },
				   .net     = SERVED_NET_NONE,
				   .limits  = { .lifetime_ms = 60000, .idle_ms = 60000 } };
	s   = session_new(&run, &request);
	if (!s || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
		exit(1);
	session_on_run_started(s, pair[0]);
	session_server = pair[1];
	return s;
}

static void close_session_test(void)
{
	fd_closep(&client_end);
	fd_closep(&session_server);
	fd_closep(&client.source.fd);
	loop_close(&server.loop);
	free(server.gone);
}

static void send_as_session_server(const struct session_message *message)
{
	struct err e;

	if (send(session_server, message, sizeof *message, 0) != sizeof *message || loop_turn(&server.loop, -1, &e) < 0)
		exit(1);
}

/* A call that a SIGKILL has ended: the server waits a moment for the reason, which another process reports. */
static void add_killed_call(struct session *s)
{
	struct session_call *call = calloc(1, sizeof *call);

	if (!call)
		exit(1);
	*call = (struct session_call){ .session       = s,
				       .connection    = &client,
				       .number        = 1,
				       .tools         = -1,
				       .reason        = CALL_UNDECIDED,
				       .limits.cpu_ms = 60000,
				       .state         = CALL_RUNS,
				       .clock.started = clock_ms(CLOCK_MONOTONIC) };
	TAILQ_INSERT_TAIL(&s->calls, call, link);
	s->calls_len = 1;
	send_as_session_server(&(struct session_message){ .kind = SESSION_ENDED, .call = 1, .value = SIGKILL });
}

static void check_reason_of_call(enum exit_reason of_session, const char *expected)
{
	char            text[PROTOCOL_MAX];
	struct session *s = open_session();
	json_t         *event;
	ssize_t         n;
	const char     *reason;

	add_killed_call(s);
	tap_ok(recv(client_end, text, sizeof text, MSG_DONTWAIT) < 0, "the end of a killed call waits for its reason");
	session_on_run_ended(s, of_session);
	n      = recv(client_end, text, sizeof text, MSG_DONTWAIT);
	event  = n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
	reason = json_string_value(json_object_get(json_object_get(event, "record"), "exit_reason"));
	tap_ok(reason && strcmp(reason, expected) == 0,
	       "a killed call whose session ends at that moment has ended with the session's reason, %s", expected);
	json_decref(event);
	close_session_test();
}

static void check_second_ready(void)
{
	const struct session_message ready = { .kind = SESSION_READY };
	struct session              *s     = open_session();
	char                         text[256];

	send_as_session_server(&ready);
	session_on_run_set_up(s, &RUN_RESULT_NONE, 0);
	tap_ok(s->state == SESSION_OPEN, "a session opens when its server is ready and its run is set up");
	session_request_close(s, "its client closed it");
	tap_ok(recv(session_server, text, sizeof text, 0) > 0, "the server of a closing session is asked to end");
	send_as_session_server(&ready);
	tap_ok(recv(session_server, text, sizeof text, MSG_DONTWAIT) == 0,
	       "a closing session whose server is ready once more is cut off: it cannot flood brigd");
	session_free(s);
	close_session_test();
}

int main(void)
{
	check_reason_of_call(EXIT_oom, "oom");
	check_reason_of_call(EXIT_client_gone, "cancelled");
	check_second_ready();
	return tap_done();
}
