#define _GNU_SOURCE
#include "remote.h"

#include "clock.h"
#include "remote_exchange.h"
#include "wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 128, WAIT_MS = 60 * 1000, DELETE_TIMEOUT_MS = 400, LISTEN_AGAIN_MS = 1000, LISTEN_AGAIN_MAX_MS = 60 * 1000, ENDPOINT_MS = 10 * 1000 };
#define READ_AT_ONCE (64 * KIB)

/* --- the first line --- */

static int remote_configure(struct remote *r, const char *line, size_t len)
{
	struct err   e;
	scoped_json *start = wire_parse(line, len, 512 * KIB, &e);
	const char  *url  = json_string_value(json_object_get(start, "url")), *name;
	json_t      *value;

	if (!url || !(r->url = strdup(url))) {
		fprintf(stderr, "the first line: expected an address\n");
		return -1;
	}
	json_object_foreach(json_object_get(start, "headers"), name, value)
	{
		char              *header = NULL;
		struct curl_slist *more   = NULL;

		/* libcurl leaves out a header that is written as "name:"; one with an empty value is written as "name;". */
		if (asprintf(&header, *json_string_value(value) ? "%s: %s" : "%s;%s", name, json_string_value(value)) >= 0)
			more = curl_slist_append(r->headers, header);
		free(header);
		if (!more)
			return -1;
		r->headers = more;
	}
	if (json_is_true(json_object_get(start, "sse")))
		r->sse.state = SSE_WANTED;
	return 0;
}

/* --- lines --- */

/* A modern server notices that the connection is closed; a legacy server must be sent the notification. true: it is not to be sent. */
static bool handle_cancel(struct remote *r, const struct rpc_message *m)
{
	const json_t    *id = json_object_get(m->params, "requestId");
	struct exchange *x;
	bool             modern;

	if (!m->method || strcmp(m->method, "notifications/cancelled") != 0 || !id)
		return false;
	TAILQ_FOREACH(x, &r->exchanges, link)
		if (x->id && json_equal(x->id, id))
			break;
	if (!x)
		return false;
	modern = x->modern;
	exchange_free(x);
	return modern;
}

static void handle_client_line(struct remote *r, const char *line, size_t len)
{
	struct rpc_error e;
	scoped_rpc       m;

	if (rpc_parse(&m, line, len, &e) < 0)
		fprintf(stderr, "not a message: %s\n", e.text);
	else if (!handle_cancel(r, &m))
		(void)exchange_post(r, &m, strndup(line, len));
}

static void read_client_input(struct remote *r)
{
	char       *room = lines_reserve(&r->lines, READ_AT_ONCE);
	ssize_t     n    = room ? read(STDIN_FILENO, room, READ_AT_ONCE) : 0;
	const char *line;
	size_t      len;
	enum lines_next found;

	if (n <= 0) {
		r->ends = n == 0 || errno != EINTR;
		return;
	}
	lines_add_filled(&r->lines, (size_t)n);
	while (!r->ends && (found = lines_next(&r->lines, &line, &len)) != LINES_NONE) {
		if (found == LINES_LINE && r->url)
			handle_client_line(r, line, len);
		else if (found == LINES_LINE && remote_configure(r, line, len) < 0)
			r->ends = true, r->status = 1;
	}
}

/* --- HTTP+SSE --- */

/* Answers every request with an error and ends the process; brig-mcp starts it again like any server that has ended. */
static void sse_fail_all(struct remote *r, const char *why)
{
	struct exchange *x, *next;
	char             text[sizeof r->sse.why + 20];

	snprintf(text, sizeof text, "HTTP+SSE: %s", why);
	fprintf(stderr, "%s\n", text);
	for (x = TAILQ_FIRST(&r->exchanges); x; x = next) {
		next = TAILQ_NEXT(x, link);
		if (x->is_held || x->id)
			exchange_fail(x, text);
	}
	r->ends   = true;
	r->status = 1;
}

/* Opens the stream, then sends the POSTs that wait for its endpoint. */
static void sse_advance(struct remote *r, int64_t now_ms)
{
	struct exchange *x, *next;

	if (r->sse.is_over) {
		sse_fail_all(r, r->sse.why);
		return;
	}
	switch (r->sse.state) {
	case SSE_NO:
		return;
	case SSE_WANTED:
		r->sse.state    = SSE_OPENS;
		r->sse.until_ms = now_ms + ENDPOINT_MS;
		if (!exchange_open_stream(r, true))
			sse_fail_all(r, "out of memory");
		return;
	case SSE_OPENS:
		if (now_ms >= r->sse.until_ms)
			sse_fail_all(r, "no endpoint in 10 s");
		return;
	case SSE_OPEN:
		for (x = TAILQ_FIRST(&r->exchanges); x; x = next) {
			next = TAILQ_NEXT(x, link);
			if (x->is_held)
				exchange_send_held(x);
		}
		return;
	}
}

/* --- the loop --- */

static int64_t monotonic_ms(void)
{
	return (int64_t)clock_ms(CLOCK_MONOTONIC);
}

/* Opens the stream for messages that a legacy server sends without being asked; it is opened again when it ends. */
static void open_listen_stream_if_due(struct remote *r)
{
	int64_t now = monotonic_ms();

	if (r->listens_at_ms == 1) {
		int64_t rest = (int64_t)LISTEN_AGAIN_MS * r->listened;

		r->listens_at_ms = now + (rest < LISTEN_AGAIN_MAX_MS ? rest : LISTEN_AGAIN_MAX_MS);
	}
	if (!r->listens_at_ms || now < r->listens_at_ms)
		return;
	r->listens       = true;
	r->listens_at_ms = 0;
	r->listened++;
	(void)exchange_open_stream(r, false);
}

static int poll_timeout_ms(const struct remote *r)
{
	int64_t until = r->sse.state == SSE_OPENS ? r->sse.until_ms : r->listens_at_ms;
	int64_t left  = until ? until - monotonic_ms() : WAIT_MS;

	return left < 0 ? 0 : left > WAIT_MS ? WAIT_MS : (int)left;
}

static void remote_run_once(struct remote *r)
{
	struct curl_waitfd input = { .fd = STDIN_FILENO, .events = CURL_WAIT_POLLIN };
	struct CURLMsg    *message;
	struct exchange   *x;
	int                running, left;

	if (curl_multi_perform(r->multi, &running) != CURLM_OK)
		r->ends = true;
	while ((message = curl_multi_info_read(r->multi, &left)))
		if (message->msg == CURLMSG_DONE && curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &x) == CURLE_OK)
			exchange_on_transfer_end(x, message->data.result);
	sse_advance(r, monotonic_ms());
	open_listen_stream_if_due(r);
	if (r->ends)
		return;
	if (curl_multi_poll(r->multi, &input, 1, poll_timeout_ms(r), NULL) != CURLM_OK)
		r->ends = true;
	if (input.revents)
		read_client_input(r);
}

/* --- the end --- */

/* Ends the session with the server. The timeout is short: brig-mcp soon kills a server that has not exited. */
static void delete_remote_session(struct remote *r)
{
	struct exchange *x;

	if (!r->session || r->status)
		return;
	if (!(x = exchange_open_stream(r, false)))
		return;
	curl_multi_remove_handle(r->multi, x->easy);
	curl_easy_setopt(x->easy, CURLOPT_CUSTOMREQUEST, "DELETE");
	curl_easy_setopt(x->easy, CURLOPT_TIMEOUT_MS, (long)DELETE_TIMEOUT_MS);
	(void)curl_easy_perform(x->easy);
}

static void drop_all_exchanges(struct remote *r)
{
	struct exchange *x;

	while ((x = TAILQ_FIRST(&r->exchanges)))
		exchange_free(x);
}

int remote_serve(void)
{
	struct remote r = { .lines = { .max = RPC_MAX }, .mirrored = json_object() };

	TAILQ_INIT(&r.exchanges);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(r.multi = curl_multi_init())) {
		fprintf(stderr, "libcurl does not start\n");
		return 1;
	}
	curl_multi_setopt(r.multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)CONNECTIONS_MAX);
	while (!r.ends)
		remote_run_once(&r);
	drop_all_exchanges(&r);
	delete_remote_session(&r);
	drop_all_exchanges(&r);
	curl_multi_cleanup(r.multi);
	curl_slist_free_all(r.headers);
	lines_done(&r.lines);
	json_decref(r.mirrored);
	sse_done(&r);
	free(r.session);
	free(r.url);
	curl_global_cleanup();
	return r.status;
}
