#define _GNU_SOURCE
#include "remote_exchange.h"

#include "ca_bundle.h"
#include "file.h"
#include "mirror.h"
#include "revision.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { CONNECT_MS = 10 * 1000, ANSWERED_MAX = 16 };

/* --- what is written --- */

static void write_to_client(struct remote *r, const json_t *message)
{
	size_t len  = 0;
	char  *line = rpc_dump(message, &len);

	if (line)
		line[len] = '\n';
	if (!line || file_write_all(STDOUT_FILENO, line, len + 1) < 0)
		r->ends = true;
	free(line);
}

static void write_failure_to_client(struct exchange *x, int code, const char *why)
{
	struct rpc_error e;
	json_t          *message;

	if (!x->id || x->answered)
		return;
	rpc_error_set(&e, code, "%s", why);
	message = rpc_failure(x->id, &e);
	write_to_client(x->remote, message);
	json_decref(message);
	x->answered = true;
}

/* --- what is answered --- */

static void remember_version_and_tools(struct exchange *x, const json_t *result)
{
	const char *version = json_string_value(json_object_get(result, "protocolVersion"));

	if (x->is_initialize && version)
		snprintf(x->remote->version, sizeof x->remote->version, "%s", version);
	if (strcmp(x->method, "tools/list") == 0)
		mirror_learn_tools(x->remote->mirrored, result);
}

static void forward_message(struct exchange *x, json_t *message)
{
	const json_t *result = json_object_get(message, "result");
	bool          ends   = !json_object_get(message, "method") && (result || json_object_get(message, "error"));

	if (!json_is_object(message) || (ends && x->answered))
		return;
	if (ends && x->id && (!json_object_get(message, "id") || json_is_null(json_object_get(message, "id"))))
		json_object_set(message, "id", x->id); /* an error without an id belongs to the request that this response answers */
	if (ends && x->id && json_equal(json_object_get(message, "id"), x->id)) {
		x->answered = true;
		remember_version_and_tools(x, result);
	}
	write_to_client(x->remote, message);
}

static void forward_messages(void *owner, const char *bytes, size_t len)
{
	struct exchange *x = owner;
	struct rpc_error e;
	json_t          *message = rpc_load_json(bytes, len, &e), *one;
	size_t           i;

	if (!message && !x->is_events && !x->is_refused)
		write_failure_to_client(x, RPC_NO_ANSWER, e.text);
	if (json_is_array(message))
		json_array_foreach(message, i, one)
			forward_message(x, one);
	else if (message)
		forward_message(x, message);
	json_decref(message);
}

/*
 * HTTP+SSE: ends the exchange that this answer on the stream belongs to. libcurl calls this, so an exchange whose transfer
 * still runs is not freed here.
 */
static void forward_streamed_message(struct exchange *stream, json_t *message)
{
	struct exchange *x, *next;

	for (x = TAILQ_FIRST(&stream->remote->exchanges); x && !json_object_get(message, "method"); x = next) {
		next = TAILQ_NEXT(x, link);
		if (!x->id || x->answered || !json_equal(json_object_get(message, "id"), x->id))
			continue;
		x->answered = true;
		if (x->awaits)
			exchange_free(x);
		break;
	}
	write_to_client(stream->remote, message);
}

static void on_server_event(void *owner, const char *bytes, size_t len)
{
	struct exchange *x    = owner;
	const char      *name = x->events.name;
	struct rpc_error e;
	json_t          *message;

	if (!x->is_stream) {
		forward_messages(owner, bytes, len);
		return;
	}
	if (strcmp(name, "endpoint") == 0)
		sse_set_endpoint(x->remote, bytes, len);
	if (x->remote->sse.state != SSE_OPEN || (*name && strcmp(name, "message") != 0))
		return;
	message = rpc_load_json(bytes, len, &e);
	if (json_is_object(message))
		forward_streamed_message(x, message);
	json_decref(message);
}

/* --- bytes as they come --- */

static void detect_event_stream(struct exchange *x)
{
	const char *type = NULL;

	x->knows_type = true;
	curl_easy_getinfo(x->easy, CURLINFO_CONTENT_TYPE, &type);
	x->is_events = type && strncasecmp(type, "text/event-stream", 17) == 0;
}

/* Data is refused if it should be an event stream and is not, or if the endpoint is refused. */
static bool may_take_body(const struct exchange *x)
{
	long status = 0;

	if (!x->is_stream)
		return true;
	curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
	return status == 200 && x->is_events && !*x->remote->sse.why;
}

static size_t on_response_bytes(char *bytes, size_t one, size_t n, void *owner)
{
	struct exchange *x = owner;
	char            *larger;

	n *= one;
	if (!x->knows_type)
		detect_event_stream(x);
	if (!may_take_body(x))
		return 0;
	if (x->is_events) {
		x->too_large = !events_parse(&x->events, bytes, n);
		return x->too_large || !may_take_body(x) ? 0 : n;
	}
	x->too_large = x->len + n > RPC_MAX;
	if (x->too_large)
		return 0;
	if (x->len + n + 1 > x->room) {
		if (!(larger = realloc(x->data, (x->len + n + 1) * 2)))
			return 0;
		x->data = larger;
		x->room = (x->len + n + 1) * 2;
	}
	memcpy(x->data + x->len, bytes, n);
	x->len += n;
	return n;
}

static size_t on_response_header(char *bytes, size_t one, size_t n, void *owner)
{
	static const char name[] = "mcp-session-id:";
	struct exchange  *x      = owner;
	const char       *value  = bytes + sizeof name - 1, *end = bytes + n * one;

	if (!x->is_initialize || x->remote->sse.state != SSE_NO || n * one < sizeof name || strncasecmp(bytes, name, sizeof name - 1) != 0)
		return n * one;
	while (value < end && *value == ' ')
		value++;
	while (end > value && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' '))
		end--;
	for (const char *p = value; p < end; p++)
		if (*p <= 0x20 || *p >= 0x7f)
			return n * one; /* such an id cannot be sent back in a header */
	free(x->remote->session);
	x->remote->session = end > value ? strndup(value, (size_t)(end - value)) : NULL;
	return n * one;
}

/* --- its end --- */

void exchange_free(struct exchange *x)
{
	curl_multi_remove_handle(x->remote->multi, x->easy);
	curl_easy_cleanup(x->easy);
	curl_slist_free_all(x->headers);
	TAILQ_REMOVE(&x->remote->exchanges, x, link);
	events_done(&x->events);
	json_decref(x->id);
	free(x->body);
	free(x->data);
	free(x);
}

/* The stream of a legacy server has ended, and is opened again, or there is none. */
static void on_listen_stream_end(struct exchange *x, long status)
{
	struct remote *r = x->remote;

	r->listens       = true;
	r->listens_at_ms = status == 200 && r->listened < 1000 ? 1 : 0;
}

static void log_to_stderr(const char *words, const char *more)
{
	fprintf(stderr, "%s%s\n", words, more);
}

static void exchange_end_with_status(struct exchange *x, long status)
{
	char text[200];

	x->is_refused = status >= 400;
	if (x->data && x->len && !x->is_events && x->remote->sse.state != SSE_OPEN)
		forward_messages(x, x->data, x->len);
	snprintf(text, sizeof text, "HTTP status %ld without an answer", status);
	write_failure_to_client(x, RPC_NO_ANSWER, text);
	if (!x->id && status >= 400)
		log_to_stderr(x->method, ": was not taken");
	if (status == 404 && x->remote->session && !x->is_initialize) {
		log_to_stderr("the server has ended the session", "");
		x->remote->ends   = true;
		x->remote->status = 1;
	}
}

void exchange_on_transfer_end(struct exchange *x, CURLcode code)
{
	long status = 0;
	char text[CURL_ERROR_SIZE + 40];

	curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
	if (sse_start_fallback(x, code, status))
		return;
	if (x->is_stream) {
		sse_on_stream_end(x, code, status);
	} else if (x->is_listen) {
		on_listen_stream_end(x, code == CURLE_OK || code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR ? status : 0);
	} else if (x->too_large) {
		write_failure_to_client(x, RPC_TOO_LARGE, "the answer has more than 4 MiB");
	} else if (code != CURLE_OK) {
		snprintf(text, sizeof text, "%s", *x->why ? x->why : curl_easy_strerror(code));
		write_failure_to_client(x, RPC_NO_ANSWER, text);
		if (!x->id)
			log_to_stderr(x->method, ": was not sent");
	} else if (sse_await_answer(x, status)) {
		return;
	} else {
		exchange_end_with_status(x, status);
	}
	if (strcmp(x->method, "notifications/initialized") == 0 && status >= 200 && status < 300 && !x->remote->listens && x->remote->sse.state == SSE_NO)
		x->remote->listens_at_ms = 1;
	exchange_free(x);
}

void exchange_fail(struct exchange *x, const char *why)
{
	char text[500];

	x->is_refused = x->refused_with != 0;
	if (x->is_refused && x->len && !x->is_events)
		forward_messages(x, x->data, x->len);
	snprintf(text, sizeof text, "HTTP status %ld without an answer; %s", x->refused_with, why);
	write_failure_to_client(x, RPC_NO_ANSWER, x->is_refused ? text : why);
	exchange_free(x);
}

/* --- its beginning --- */

static bool append_header(struct exchange *x, const char *name, const char *value)
{
	char              *line = NULL;
	struct curl_slist *more;

	if (asprintf(&line, "%s: %s", name, value) < 0)
		return false;
	more = curl_slist_append(x->headers, line);
	free(line);
	if (more)
		x->headers = more;
	return more != NULL;
}

static bool append_request_headers(struct exchange *x, const json_t *params)
{
	struct remote *r  = x->remote;
	const char    *name = json_string_value(json_object_get(params, "name"));
	char          *coded;
	bool           ok = true;

	for (const struct curl_slist *h = r->headers; h; h = h->next) {
		struct curl_slist *more = curl_slist_append(x->headers, h->data);

		if (!more)
			return false;
		x->headers = more;
	}
	if (!x->is_listen)
		ok = append_header(x, "Content-Type", "application/json");
	ok = ok && append_header(x, "Accept", x->is_listen ? "text/event-stream" : "application/json, text/event-stream") && append_header(x, "Expect", "");
	if (!x->modern) {
		ok = ok && (!r->session || x->is_initialize || append_header(x, "Mcp-Session-Id", r->session));
		return ok && (!*r->version || x->is_initialize || append_header(x, "MCP-Protocol-Version", r->version));
	}
	ok = ok && append_header(x, "MCP-Protocol-Version", revision_name(REVISION_MODERN)) && append_header(x, "Mcp-Method", x->method);
	if (!ok || !name)
		return ok;
	coded = mirror_encode_value(name);
	ok    = coded && append_header(x, "Mcp-Name", coded);
	free(coded);
	return ok && (x->headers = mirror_append_headers(x->headers, r->mirrored, params));
}

static const char *post_url(const struct remote *r)
{
	return r->sse.endpoint ? r->sse.endpoint : r->url;
}

/* No redirects, no protocol but HTTP, no decompression: the response takes no more memory than the server has sent. */
static bool set_curl_options(struct exchange *x)
{
	CURL       *c      = x->easy;
	const char *bundle = ca_bundle_find(); /* the path in libcurl is the one of the distribution that built it */
	bool        ok     = curl_easy_setopt(c, CURLOPT_URL, x->is_listen ? x->remote->url : post_url(x->remote)) == CURLE_OK;

	ok = ok && curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK;
	ok = ok && (!bundle || curl_easy_setopt(c, CURLOPT_CAINFO, bundle) == CURLE_OK);
	ok = ok && curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK;
	ok = ok && curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) == CURLE_OK;
	ok = ok && curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS) == CURLE_OK;
	ok = ok && curl_easy_setopt(c, CURLOPT_USERAGENT, "brig-mcp/" BRIG_VERSION) == CURLE_OK;
	ok = ok && curl_easy_setopt(c, CURLOPT_HTTPHEADER, x->headers) == CURLE_OK;
	ok = ok && curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_response_bytes) == CURLE_OK && curl_easy_setopt(c, CURLOPT_WRITEDATA, x) == CURLE_OK;
	ok = ok && curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_response_header) == CURLE_OK && curl_easy_setopt(c, CURLOPT_HEADERDATA, x) == CURLE_OK;
	ok = ok && curl_easy_setopt(c, CURLOPT_ERRORBUFFER, x->why) == CURLE_OK && curl_easy_setopt(c, CURLOPT_PRIVATE, x) == CURLE_OK;
	if (!ok || x->is_listen)
		return ok;
	return curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(x->body)) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_POSTFIELDS, x->body) == CURLE_OK;
}

static struct exchange *exchange_create(struct remote *r)
{
	struct exchange *x = calloc(1, sizeof *x);

	if (!x)
		return NULL;
	*x = (struct exchange){ .remote = r, .easy = curl_easy_init() };
	x->events = (struct events){ .max = RPC_MAX, .event = on_server_event, .owner = x };
	TAILQ_INSERT_TAIL(&r->exchanges, x, link);
	return x;
}

static struct exchange *exchange_start_transfer(struct exchange *x, const json_t *params)
{
	x->is_held = !x->is_listen && (x->remote->sse.state == SSE_WANTED || x->remote->sse.state == SSE_OPENS);
	if (x->easy && append_request_headers(x, params) && set_curl_options(x) && (x->is_held || curl_multi_add_handle(x->remote->multi, x->easy) == CURLM_OK))
		return x;
	write_failure_to_client(x, RPC_NO_ANSWER, "out of memory");
	exchange_free(x);
	return NULL;
}

/*
 * A server should end the stream that has brought the answer, and most do at once, so that its connection is used again. The
 * streams of one that does not would soon be all connections that there may be: of more than ANSWERED_MAX the oldest is ended.
 */
static void drop_oldest_answered(struct remote *r)
{
	struct exchange *x, *oldest = NULL;
	unsigned         n = 0;

	TAILQ_FOREACH_REVERSE(x, &r->exchanges, exchanges, link)
		if (x->answered) {
			oldest = x;
			n++;
		}
	if (n > ANSWERED_MAX)
		exchange_free(oldest);
}

struct exchange *exchange_post(struct remote *r, const struct rpc_message *message, char *line)
{
	struct exchange *x       = exchange_create(r);
	const json_t    *version = json_object_get(json_object_get(message->params, "_meta"), META_VERSION);

	drop_oldest_answered(r);
	if (!x) {
		free(line);
		return NULL;
	}
	x->body   = line;
	x->modern = version != NULL;
	x->id     = message->kind == RPC_REQUEST ? json_incref((json_t *)message->id) : NULL;
	snprintf(x->method, sizeof x->method, "%s", message->method ? message->method : "response");
	x->is_initialize = strcmp(x->method, "initialize") == 0;
	return exchange_start_transfer(x, message->params);
}

struct exchange *exchange_open_stream(struct remote *r, bool is_sse)
{
	struct exchange *x = exchange_create(r);

	if (!x)
		return NULL;
	x->is_listen = true;
	x->is_stream = is_sse;
	return exchange_start_transfer(x, NULL);
}

void exchange_send_held(struct exchange *x)
{
	x->is_held      = false;
	x->refused_with = 0;
	x->knows_type = x->is_events = x->is_refused = false;
	x->len = 0;
	if (curl_easy_setopt(x->easy, CURLOPT_URL, post_url(x->remote)) == CURLE_OK && curl_multi_add_handle(x->remote->multi, x->easy) == CURLM_OK)
		return;
	write_failure_to_client(x, RPC_NO_ANSWER, "out of memory");
	exchange_free(x);
}
