#define _GNU_SOURCE
#include "tool_server.h"

#include "clean.h"
#include "fd.h"
#include "text.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	START_MS   = 30 * 1000, /* npx may have to fetch it */
	PROBE_MS   = 3 * 1000,
	PAGES_MAX  = 200,
	RELIST_MS  = 1000, /* between two fetches of the list, however often the server reports a change */
	REST_MS    = 1000,
	RESTS_MAX  = 6,    /* doublings */
	LINES_LOGGED_MAX = 50,
	NOISE_LOGGED_MAX = 5,
	LINES_MS   = 10 * 1000,
	LINE_READ  = 64 * 1024, /* a secret is hidden only if all of it is in what is read */
	LINE_SHOWN = 400,
};
#define LIST_MAX (8 * MIB) /* of its list of tools, all pages together: 200 of 4 MiB each would be held otherwise */

/* --- its log --- */

/* Values of its environment and headers may be secrets, and are masked in the log. Short ones are not: they would match too much else. */
static void mask_values(char *line, const json_t *secrets)
{
	const char *name;
	json_t     *value;

	json_object_foreach((json_t *)secrets, name, value) {
		const char *text = json_string_value(value);
		size_t      n    = text ? strlen(text) : 0;

		for (char *at = n >= 6 ? strstr(line, text) : NULL; at; at = strstr(at + 1, text))
			memset(at, '*', n);
	}
}

static void mask_secrets(const struct tool_server *s, char *text)
{
	mask_values(text, s->entry->env);
	mask_values(text, s->entry->headers);
}

static void reset_log_counts_if_due(struct tool_server *s)
{
	int64_t now = loop_now_ms();

	if (now - s->logged_since_ms <= LINES_MS)
		return;
	s->logged_since_ms = now;
	s->lines_logged = s->noise_logged = 0;
}

/* Logs a line of the server's output, or about the server: at most LINES_LOGGED_MAX of them in LINES_MS. */
static void log_server_line(struct tool_server *s, const char *what, const char *bytes, size_t len)
{
	size_t n;
	char  *text, *line;

	reset_log_counts_if_due(s);
	if (s->lines_logged++ >= LINES_LOGGED_MAX)
		return;
	text = clean_text(bytes, clean_cut_length(bytes, len, LINE_READ), false, &n);
	if (!text)
		return;
	mask_secrets(s, text);
	text[clean_cut_length(text, n, LINE_SHOWN)] = 0;
	text_make_plain(text);
	if (asprintf(&line, "%s: %s%s%s", s->entry->name, what, text, s->lines_logged == LINES_LOGGED_MAX ? " (more of it is left out for a while)" : "") >= 0) {
		s->log(s->log_owner, line);
		free(line);
	}
	free(text);
}

static void close_stderr(struct tool_server *s)
{
	if (s->errors_wait)
		loop_remove(s->loop, &s->errors);
	s->errors_wait = false;
	fd_closep(&s->errors.fd);
	lines_done(&s->error_lines);
}

static void on_stderr_readable(void *owner)
{
	struct tool_server *s    = owner;
	char               *room = lines_reserve(&s->error_lines, 4096);
	ssize_t             n    = room ? read(s->errors.fd, room, 4096) : 0;
	const char         *line;
	size_t              len;
	enum lines_next     found;

	if (n > 0) {
		lines_add_filled(&s->error_lines, (size_t)n);
		while ((found = lines_next(&s->error_lines, &line, &len)) != LINES_NONE)
			if (found == LINES_LINE)
				log_server_line(s, "", line, len);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		close_stderr(s);
	}
}

/* --- waiting for it --- */

void server_wait_leave(struct server_wait *w)
{
	if (w->server)
		TAILQ_REMOVE(&w->server->waits, w, link);
	w->server = NULL;
}

/* A callback adds no waiter: the server is ready or rests, so tool_server_await() answers at once. */
static void end_all_waits(struct tool_server *s, const char *why)
{
	struct server_wait *w;

	while ((w = TAILQ_FIRST(&s->waits))) {
		server_wait_leave(w);
		w->over(w->owner, s, why);
	}
}

/* --- its end --- */

static void on_restart_pause_over(void *owner)
{
	struct tool_server *s = owner;

	s->state = TOOL_SERVER_OFF;
}

/* Takes the timers, stderr and the pidfd out of the loop; kills and reaps a process that is left. */
static void release_process(struct tool_server *s, char *how, size_t len)
{
	loop_timer_clear(s->loop, &s->state_timer);
	loop_timer_clear(s->loop, &s->relist);
	if (s->errors_wait)
		on_stderr_readable(s); /* its last lines */
	close_stderr(s);
	if (s->exits_wait)
		loop_remove(s->loop, &s->exits);
	s->exits_wait = false;
	if (s->process.pid > 0) {
		server_process_signal(&s->process, SIGKILL);
		server_process_kill_and_reap(&s->process, how, len);
	}
	json_decref(s->pages);
	s->pages = NULL;
}

/* The list that it had is kept: names can be looked up while it rests. */
static void fail_server(struct tool_server *s, const char *why)
{
	char     how[64] = "", text[sizeof s->why];
	unsigned doubled = s->failures < RESTS_MAX ? s->failures : RESTS_MAX;

	snprintf(text, sizeof text, "%s", why);
	mask_secrets(s, text); /* programs get it, too */
	release_process(s, how, sizeof how);
	s->failures++;
	s->state          = TOOL_SERVER_RESTS;
	s->rests_until_ms = loop_now_ms() + (REST_MS << doubled);
	s->state_timer       = (struct loop_timer){ .due = on_restart_pause_over, .owner = s };
	loop_timer_set(s->loop, &s->state_timer, REST_MS << doubled);
	snprintf(s->why, sizeof s->why, "%s", text);
	log_server_line(s, "", text, strlen(text));
	rpc_client_close(&s->rpc, s->why); /* ends the open calls */
	end_all_waits(s, s->why);
}

static void start_server(struct tool_server *s);

static void on_process_exit(void *owner)
{
	struct tool_server *s       = owner;
	bool                probing = s->probing && s->state == TOOL_SERVER_STARTS && !s->no_probe;
	char                how[64], why[200];

	loop_remove(s->loop, &s->exits);
	s->exits_wait = false;
	server_process_kill_and_reap(&s->process, how, sizeof how);
	snprintf(why, sizeof why, "the server has ended (%s)", how);
	rpc_client_drain(&s->rpc); /* takes the answers that it wrote before it ended */
	if (s->state != TOOL_SERVER_READY && s->state != TOOL_SERVER_STARTS)
		return;
	if (!probing) {
		fail_server(s, why);
		return;
	}
	s->no_probe = true; /* an older server, which exits at a request that it does not know */
	release_process(s, how, sizeof how);
	rpc_client_close(&s->rpc, why);
	start_server(s);
}

static void on_output_closed(void *owner)
{
	struct tool_server *s = owner;

	if (s->process.pidfd < 0 && s->process.pid > 0)
		fail_server(s, "the server has closed its output");
	else if (s->state == TOOL_SERVER_READY || s->state == TOOL_SERVER_STARTS)
		server_process_signal(&s->process, SIGTERM); /* its output has ended: on_process_exit() is called soon, or on_start_timeout() */
	if (s->state == TOOL_SERVER_READY) {
		s->state = TOOL_SERVER_STARTS;
		loop_timer_set(s->loop, &s->state_timer, REST_MS);
	}
}

static void on_start_timeout(void *owner)
{
	struct tool_server *s = owner;

	fail_server(s, s->rpc.ended ? "the server has closed its output" : "the server was not ready in 30 s");
}

/* --- its list of tools --- */

static void request_tools_page(struct tool_server *s, const char *cursor);

static json_t *add_request_meta(const struct tool_server *s, json_t *params)
{
	if (revision_is_modern(s->revision))
		json_object_set_new(params, "_meta",
				    json_pack("{ss s{ss ss} s{}}", META_VERSION, revision_name(s->revision), META_CLIENT, "name", "brig", "version",
					      BRIG_VERSION, META_CAPABILITIES));
	return params;
}

/* A tool that was once not read-only, or once destructive, stays so whatever a later list has: the policy relies on it. */
static void remember_strict_hints(struct tool_server *s)
{
	for (size_t i = 0; i < s->catalog.n && json_object_size(s->strict) < 5 * CATALOG_MAX; i++) {
		struct catalog_tool *t = &s->catalog.tool[i];

		if (!t->read_only)
			json_object_set_new(s->strict, t->name, json_boolean(t->destructive || json_is_true(json_object_get(s->strict, t->name))));
		else if (json_object_get(s->strict, t->name))
			t->read_only = false;
		t->destructive |= json_is_true(json_object_get(s->strict, t->name));
	}
}

static void set_server_ready(struct tool_server *s)
{
	if (s->state != TOOL_SERVER_STARTS)
		return;
	loop_timer_clear(s->loop, &s->state_timer);
	s->state = TOOL_SERVER_READY;
	end_all_waits(s, NULL);
}

static void on_relist_timer(void *owner)
{
	struct tool_server *s = owner;

	if (s->state == TOOL_SERVER_READY && !s->listing.client)
		request_tools_page(s, NULL);
}

static void adopt_tool_list(struct tool_server *s)
{
	struct catalog made;
	struct err     e;
	char           text[100];

	if (catalog_build(&made, s->entry, s->pages, &e) < 0) {
		fail_server(s, e.text);
		return;
	}
	json_decref(s->pages);
	s->pages = NULL;
	catalog_done(&s->catalog);
	s->catalog = made;
	if (made.left_out) {
		snprintf(text, sizeof text, "%zu of its tools are left out: no usable name, or too large", made.left_out);
		log_server_line(s, "", text, strlen(text));
	}
	remember_strict_hints(s);
	s->listed_ms = loop_now_ms();
	if (s->stale)
		loop_timer_set(s->loop, &s->relist, RELIST_MS);
	s->stale = false;
	set_server_ready(s);
}

static void on_tools_page(void *owner, enum rpc_end end, const json_t *reply, const char *why)
{
	static const char   too_large[] = "its list of tools has more than 8 MiB, and the rest of it is left out";
	struct tool_server *s      = owner;
	const json_t       *tools  = json_object_get(reply, "tools");
	const char         *cursor = json_string_value(json_object_get(reply, "nextCursor"));

	if (end == RPC_END_LOST)
		return; /* the function that closed the client has reported the reason */
	if (end != RPC_END_RESULT || !json_is_array(tools)) {
		char text[200];

		snprintf(text, sizeof text, "tools/list: %.150s", why ? why : end == RPC_END_ERROR ? json_string_value(json_object_get(reply, "message")) : "no list of tools");
		if (s->state == TOOL_SERVER_STARTS)
			fail_server(s, text);
		else
			log_server_line(s, "", text, strlen(text)); /* the earlier list stays in use */
		return;
	}
	s->pages_size += json_dumpb(tools, NULL, 0, JSON_COMPACT);
	if (s->pages_size > LIST_MAX) { /* this page and those behind it are left out */
		log_server_line(s, "", too_large, strlen(too_large));
		adopt_tool_list(s);
		return;
	}
	if (json_array_extend(s->pages, (json_t *)tools) == 0 && cursor && ++s->page < PAGES_MAX && json_array_size(s->pages) <= CATALOG_MAX)
		request_tools_page(s, cursor);
	else
		adopt_tool_list(s);
}

static void request_tools_page(struct tool_server *s, const char *cursor)
{
	json_t *params = json_object();

	if (!cursor) {
		json_decref(s->pages);
		s->pages      = json_array();
		s->pages_size = 0;
		s->page       = 0;
	} else {
		json_object_set_new(params, "cursor", json_string(cursor));
	}
	s->listing = (struct rpc_ask){ .answered = on_tools_page, .owner = s };
	if (!rpc_client_send_request(&s->rpc, &s->listing, "tools/list", add_request_meta(s, params), START_MS))
		fail_server(s, "the server does not read");
}

/* --- greeting --- */

static void on_subscription_end(void *owner, enum rpc_end end, const json_t *reply, const char *why)
{
	(void)owner, (void)end, (void)reply, (void)why; /* the server does not report changes of its list any more */
}

static void start_listing_tools(struct tool_server *s, const json_t *reply)
{
	const json_t *tools = json_object_get(json_object_get(reply, "capabilities"), "tools");

	s->probing = false;
	s->pages   = json_array();
	if (!tools) {
		adopt_tool_list(s);
		return;
	}
	request_tools_page(s, NULL);
	if (revision_is_modern(s->revision) && json_is_true(json_object_get(tools, "listChanged")) && s->state == TOOL_SERVER_STARTS) { /* a legacy one reports changes of its list unasked */
		json_t *wanted = json_pack("{s{sb}}", "notifications", "toolsListChanged", 1);

		s->subscription = (struct rpc_ask){ .answered = on_subscription_end, .owner = s, .slow = true };
		(void)!rpc_client_send_request(&s->rpc, &s->subscription, "subscriptions/listen", add_request_meta(s, wanted), 0);
	}
}

static void on_initialize_reply(void *owner, enum rpc_end end, const json_t *reply, const char *why)
{
	struct tool_server *s       = owner;
	const char         *version = json_string_value(json_object_get(reply, "protocolVersion"));
	char                text[200];

	if (end == RPC_END_LOST)
		return;
	if (end == RPC_END_RESULT && version && revision_find(version, &s->revision) && !revision_is_modern(s->revision)) {
		rpc_client_notify(&s->rpc, "notifications/initialized", NULL);
		start_listing_tools(s, reply);
		return;
	}
	if (end == RPC_END_RESULT)
		snprintf(text, sizeof text, "initialize: it speaks the revision %.40s, and this client does not", version ? version : "of no name");
	else
		snprintf(text, sizeof text, "initialize: %.150s", why ? why : json_string_value(json_object_get(reply, "message")));
	fail_server(s, text);
}

static void send_initialize(struct tool_server *s)
{
	json_t *params = json_pack("{ss s{} s{ss ss}}", "protocolVersion", revision_name(REVISION_LEGACY_NEWEST), "capabilities", "clientInfo", "name", "brig",
				   "version", BRIG_VERSION);

	s->probing  = false;
	s->revision = REVISION_LEGACY_NEWEST;
	s->greeting = (struct rpc_ask){ .answered = on_initialize_reply, .owner = s };
	if (!rpc_client_send_request(&s->rpc, &s->greeting, "initialize", params, START_MS))
		fail_server(s, "the server does not read");
}

static bool lists_modern_revision(const json_t *versions)
{
	for (size_t i = 0; i < json_array_size(versions); i++)
		if (json_is_string(json_array_get(versions, i)) && strcmp(json_string_value(json_array_get(versions, i)), revision_name(REVISION_MODERN)) == 0)
			return true;
	return false;
}

/* Any other answer, or none in time, is that of an older server. */
static void on_discover_reply(void *owner, enum rpc_end end, const json_t *reply, const char *why)
{
	struct tool_server *s = owner;

	(void)why;
	if (end == RPC_END_LOST)
		return;
	if (end == RPC_END_RESULT && lists_modern_revision(json_object_get(reply, "supportedVersions"))) {
		start_listing_tools(s, reply);
		return;
	}
	send_initialize(s);
}

static void send_first_request(struct tool_server *s)
{
	s->revision = REVISION_MODERN;
	if (s->no_probe || s->entry->kind == SERVER_sse) {
		send_initialize(s);
		return;
	}
	s->probing  = true;
	s->greeting = (struct rpc_ask){ .answered = on_discover_reply, .owner = s };
	if (!rpc_client_send_request(&s->rpc, &s->greeting, "server/discover", add_request_meta(s, json_object()), PROBE_MS))
		fail_server(s, "the server does not read");
}

/* --- starting --- */

/* At most one list is fetched in RELIST_MS, however often the server reports that it has changed. */
static void on_server_notification(void *owner, const struct rpc_message *m)
{
	struct tool_server *s     = owner;
	int64_t             since = loop_now_ms() - s->listed_ms;

	if (strcmp(m->method, "notifications/tools/list_changed") != 0)
		return;
	if (s->state != TOOL_SERVER_READY || s->listing.client)
		s->stale = true;
	else if (!s->relist.set)
		loop_timer_set(s->loop, &s->relist, since < RELIST_MS ? RELIST_MS - since : 0);
}

static void on_unparsable_line(void *owner, const char *bytes, size_t len)
{
	struct tool_server *s = owner;

	reset_log_counts_if_due(s);
	if (s->noise_logged++ < NOISE_LOGGED_MAX)
		log_server_line(s, "no message: ", bytes, len);
}

static int start_server_process(struct tool_server *s, struct err *e)
{
	static const struct rpc_client_events events = { .notified = on_server_notification, .noise = on_unparsable_line, .ended = on_output_closed };
	char                                 *line;

	if (server_process_start(&s->process, s->entry, e) < 0)
		return -1;
	s->errors = (struct loop_source){ .fd = fd_take(&s->process.err), .ready = on_stderr_readable, .owner = s };
	s->error_lines = (struct lines){ .max = 64 * KIB };
	s->exits  = (struct loop_source){ .fd = s->process.pidfd, .ready = on_process_exit, .owner = s };
	if (rpc_client_open(&s->rpc, s->loop, fd_take(&s->process.in), fd_take(&s->process.out), &events, s, e) < 0)
		return -1;
	s->errors_wait = loop_add(s->loop, &s->errors, e) == 0;
	s->exits_wait  = s->exits.fd >= 0 && loop_add(s->loop, &s->exits, e) == 0;
	if ((line = server_process_greeting(s->entry)))
		rpc_client_send_line(&s->rpc, line, strlen(line));
	return 0;
}

static void start_server(struct tool_server *s)
{
	struct err e;

	s->state    = TOOL_SERVER_STARTS;
	s->state_timer = (struct loop_timer){ .due = on_start_timeout, .owner = s };
	s->relist   = (struct loop_timer){ .due = on_relist_timer, .owner = s };
	s->stale    = false;
	loop_timer_set(s->loop, &s->state_timer, START_MS);
	if (*s->entry->broken)
		fail_server(s, s->entry->broken);
	else if (start_server_process(s, &e) < 0)
		fail_server(s, e.text);
	else
		send_first_request(s);
}

static void add_server_wait(struct tool_server *s, struct server_wait *w)
{
	w->server = s;
	TAILQ_INSERT_TAIL(&s->waits, w, link);
}

void tool_server_await(struct tool_server *s, struct server_wait *w)
{
	char why[sizeof s->why + 60];

	switch (s->state) {
	case TOOL_SERVER_READY:
		w->over(w->owner, s, NULL);
		return;
	case TOOL_SERVER_RESTS:
		snprintf(why, sizeof why, "%s; it is started again in %lld s at the earliest", s->why,
			 (long long)(s->rests_until_ms - loop_now_ms() + 999) / 1000);
		w->over(w->owner, s, why);
		return;
	case TOOL_SERVER_STARTS:
		add_server_wait(s, w);
		return;
	case TOOL_SERVER_OFF:
		add_server_wait(s, w);
		start_server(s);
		return;
	}
}

/* --- using it --- */

bool tool_server_call(struct tool_server *s, struct rpc_ask *a, const char *tool, json_t *arguments, uint64_t ms)
{
	return rpc_client_send_request(&s->rpc, a, "tools/call", add_request_meta(s, json_pack("{ss so}", "name", tool, "arguments", arguments)), ms);
}

void tool_server_reset_failures(struct tool_server *s)
{
	s->failures = 0;
}

/* --- open and close --- */

void tool_server_init(struct tool_server *s, const struct server_entry *entry, struct loop *loop, void (*log)(void *owner, const char *line),
		      void *log_owner)
{
	*s = (struct tool_server){ .entry = entry, .loop = loop, .log = log, .log_owner = log_owner, .process = SERVER_PROCESS_NONE, .strict = json_object() };
	s->errors.fd = -1;
	TAILQ_INIT(&s->waits);
}

/* Waits until all processes have ended, for at most ms, and reaps those that have. */
static void reap_ended_servers(struct tool_server *s, size_t n, int ms)
{
	int64_t end = loop_now_ms() + ms, left;

	for (size_t i = 0; i < n; i++) {
		struct pollfd on = { .fd = s[i].process.pidfd, .events = POLLIN };
		char          how[64];

		if (s[i].process.pid <= 0)
			continue;
		left = end - loop_now_ms();
		if (on.fd < 0 || poll(&on, 1, left > 0 ? (int)left : 0) > 0)
			server_process_kill_and_reap(&s[i].process, how, sizeof how);
	}
}

void tool_servers_close(struct tool_server *s, size_t n)
{
	static const struct {
		int number, ms;
	} steps[] = { { 0, 500 }, { SIGTERM, 500 }, { SIGKILL, 500 } };
	char how[64];

	for (size_t i = 0; i < n; i++) {
		if (s[i].exits_wait)
			loop_remove(s[i].loop, &s[i].exits);
		s[i].exits_wait = false;
		rpc_client_close(&s[i].rpc, "the server is ended");
	}
	for (size_t step = 0; step < ARRAY_LEN(steps); step++) {
		for (size_t i = 0; i < n && steps[step].number; i++)
			server_process_signal(&s[i].process, steps[step].number);
		reap_ended_servers(s, n, steps[step].ms);
	}
	for (size_t i = 0; i < n; i++) {
		release_process(&s[i], how, sizeof how);
		end_all_waits(&s[i], "the server is ended");
		catalog_done(&s[i].catalog);
		json_decref(s[i].strict);
	}
}
