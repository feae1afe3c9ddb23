/* test_gate_list.c - the list of runs, of which each client gets as many as one message holds */
#include "clock.h"
#include "gate.h"
#include "served_run.h"
#include "session.h"
#include "tap.h"

#include <sys/socket.h>
#include <unistd.h>

enum { RUNS = 210, SESSIONS = 30, DAYS_30 = 30 * 24 * 60 * 60 };

static struct served_profile profile;
static struct server         server;
static struct access_rule    rule;
static struct connection     client; /* root's: every run is listed for it */
static struct served_run     run[RUNS];
static struct session        session[SESSIONS];

static void fill(char *text, size_t size, char with)
{
	memset(text, with, size - 1);
	text[size - 1] = 0;
}

/* All texts and numbers as long as they can be. */
static void add_runs(size_t comm_size)
{
	fill(profile.name, sizeof profile.name, 'p');
	for (struct served_run *r = run; r < run + RUNS; r++) {
		r->profile  = &profile;
		r->peer     = (struct peer){ .uid = 4294967294, .pid = 4194304 };
		r->asked_ms = clock_ms(CLOCK_MONOTONIC) - DAYS_30 * 1e3;
		fill(r->peer.comm, comm_size, '"');
		fill(r->id, sizeof r->id, 'i');
		TAILQ_INSERT_TAIL(&server.runs, r, link);
	}
}

static void add_sessions(void)
{
	for (struct session *s = session; s < session + SESSIONS; s++) {
		s->run   = run;
		s->state = SESSION_OPEN;
		TAILQ_INIT(&s->calls);
		fill(s->name, sizeof s->name, 's');
		for (size_t i = 0; i < SESSION_CONTEXTS_MAX; i++) {
			s->context[i].is_there = true;
			fill(s->context[i].name, sizeof s->context[i].name, 'c');
		}
		TAILQ_INSERT_TAIL(&server.sessions, s, link);
	}
}

static json_t *list(void)
{
	struct protocol_request request = { .kind = REQUEST_list, .tag = TAG_MAX };
	struct denial           why;
	static char             answer[PROTOCOL_MAX];
	ssize_t                 n;
	int                     pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
		return NULL;
	client = (struct connection){ .server = &server, .source = { .fd = pair[0] }, .access_rule = &rule };
	TAILQ_INIT(&client.unsent);
	(void)!gate_serve_request(&client, &request, &why);
	n = recv(pair[1], answer, sizeof answer, MSG_DONTWAIT);
	close(pair[0]);
	close(pair[1]);
	return n > 0 ? json_loadb(answer, (size_t)n, 0, NULL) : NULL;
}

static void check(const char *what)
{
	json_t    *answer = list();
	size_t     n      = json_array_size(json_object_get(answer, "runs"));
	json_int_t more   = json_integer_value(json_object_get(answer, "left_out"));

	tap_ok(answer != NULL, "%s are an answer", what);
	tap_ok(n > 100 && n <= PROTOCOL_LIST_MAX && more == (json_int_t)(RUNS - n), "%s: the first ones are listed and the others are counted", what);
	tap_ok(json_array_size(json_object_get(answer, "sessions")) > 0, "%s: sessions are listed, too", what);
	json_decref(answer);
}

static void check_names(size_t comm_size, const char *what)
{
	TAILQ_INIT(&server.runs);
	TAILQ_INIT(&server.sessions);
	add_runs(comm_size);
	add_sessions();
	check(what);
}

int main(void)
{
	check_names(2, "runs of clients with short names");
	check_names(16, "runs of clients with the longest names that the kernel has today");
	check_names(sizeof run->peer.comm, "runs of clients with the longest names that brigd keeps");
	return tap_done();
}
