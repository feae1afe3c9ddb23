#define _GNU_SOURCE
#include "sse.h"

#include "remote_exchange.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { ENDPOINT_MAX = 4096 };

/* --- the endpoint --- */

static bool urls_have_same_part(CURLU *a, CURLU *b, CURLUPart part)
{
	char *x = NULL, *y = NULL;
	bool  same = curl_url_get(a, part, &x, CURLU_DEFAULT_PORT) == CURLUE_OK && curl_url_get(b, part, &y, CURLU_DEFAULT_PORT) == CURLUE_OK &&
		    strcasecmp(x, y) == 0;

	curl_free(x);
	curl_free(y);
	return same;
}

static bool has_same_origin(CURLU *a, CURLU *b)
{
	return urls_have_same_part(a, b, CURLUPART_SCHEME) && urls_have_same_part(a, b, CURLUPART_HOST) && urls_have_same_part(a, b, CURLUPART_PORT);
}

/* Resolves text relative to url. libcurl does it: a second URL parser might take another host from the same text than libcurl connects to. */
static char *resolve_endpoint_url(CURLU *from, CURLU *to, const char *url, const char *text)
{
	char *full = NULL, *made;

	if (curl_url_set(from, CURLUPART_URL, url, 0) != CURLUE_OK || curl_url_set(to, CURLUPART_URL, url, 0) != CURLUE_OK)
		return NULL;
	if (curl_url_set(to, CURLUPART_URL, text, 0) != CURLUE_OK || curl_url_get(to, CURLUPART_URL, &full, 0) != CURLUE_OK)
		return NULL;
	made = strdup(full);
	curl_free(full);
	return made;
}

char *sse_resolve_endpoint(const char *url, const char *text, size_t len, char *why, size_t why_len)
{
	CURLU *from = curl_url(), *to = curl_url();
	char  *copy = len <= ENDPOINT_MAX ? strndup(text, len) : NULL, *made = NULL;

	if (len > ENDPOINT_MAX)
		snprintf(why, why_len, "its endpoint has more than %d bytes", ENDPOINT_MAX);
	else if (!from || !to || !copy)
		snprintf(why, why_len, "out of memory");
	else if (strlen(copy) != len || text_has_control(copy) || !(made = resolve_endpoint_url(from, to, url, copy)))
		snprintf(why, why_len, "its endpoint is not a URL");
	else if (!has_same_origin(from, to))
		snprintf(why, why_len, "its endpoint %.200s has another origin than its address, and is not used", copy);
	if (*why) {
		free(made);
		made = NULL;
	}
	curl_url_cleanup(from);
	curl_url_cleanup(to);
	free(copy);
	return made;
}

void sse_set_endpoint(struct remote *r, const char *text, size_t len)
{
	if (r->sse.state == SSE_OPENS && !r->sse.endpoint)
		r->sse.endpoint = sse_resolve_endpoint(r->url, text, len, r->sse.why, sizeof r->sse.why);
	if (r->sse.endpoint)
		r->sse.state = SSE_OPEN;
}

void sse_done(struct remote *r)
{
	free(r->sse.endpoint);
	r->sse.endpoint = NULL;
}

/* --- what becomes of an exchange --- */

bool sse_start_fallback(struct exchange *x, CURLcode code, long status)
{
	struct remote *r = x->remote;

	if (code != CURLE_OK || !x->is_initialize || r->sse.state != SSE_NO || (status != 400 && status != 404 && status != 405))
		return false;
	curl_multi_remove_handle(r->multi, x->easy);
	x->is_held      = true;
	x->refused_with = status;
	free(r->session);
	r->session      = NULL;
	r->sse.state    = SSE_WANTED;
	return true;
}

bool sse_await_answer(struct exchange *x, long status)
{
	if (x->remote->sse.state != SSE_OPEN || !x->id || x->answered || status < 200 || status > 299)
		return false;
	curl_multi_remove_handle(x->remote->multi, x->easy);
	x->awaits = true;
	return true;
}

void sse_on_stream_end(const struct exchange *stream, CURLcode code, long status)
{
	struct sse *s = &stream->remote->sse;

	s->is_over = true;
	if (*s->why)
		return;
	if (stream->too_large)
		snprintf(s->why, sizeof s->why, "an event has more than 4 MiB");
	else if (status && (status != 200 || !stream->is_events))
		snprintf(s->why, sizeof s->why, "HTTP status %ld and no event stream", status);
	else if (code != CURLE_OK)
		snprintf(s->why, sizeof s->why, "the event stream has ended: %.150s", *stream->why ? stream->why : curl_easy_strerror(code));
	else
		snprintf(s->why, sizeof s->why, "the event stream has ended");
}
