#define _GNU_SOURCE
#include "request_head.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct out {
	char  *at;
	size_t left;
	bool   is_short;
};

static void put_bytes(struct out *o, const char *bytes, size_t len)
{
	if (len > o->left) {
		o->is_short = true;
		o->left     = 0;
		return;
	}
	if (len) /* memcpy() wants no NULL */
		memcpy(o->at, bytes, len);
	o->at += len;
	o->left -= len;
}

static void put_text(struct out *o, const char *text)
{
	put_bytes(o, text, strlen(text));
}

static void put_span(struct out *o, struct span s)
{
	put_bytes(o, s.at, s.len);
}

static void put_header(struct out *o, const char *name, const char *value)
{
	put_text(o, name);
	put_text(o, ": ");
	put_text(o, value);
	put_text(o, "\r\n");
}

/* --- which headers go on --- */

/* The Connection header names further headers that concern this hop alone. */
static bool connection_header_names(const struct request_head *h, struct span name)
{
	for (unsigned i = 0; i < h->headers; i++) {
		struct span list = h->header[i].value, item;

		while (span_equals(h->header[i].name, "connection") && span_next(&list, &item))
			if (item.len == name.len && strncasecmp(item.at, name.at, name.len) == 0)
				return true;
	}
	return false;
}

/* Headers that concern this hop alone, or that are written anew. */
static bool is_hop_by_hop(struct span name)
{
	static const char *const ours[] = {
		"host",    "connection",       "proxy-connection",    "keep-alive",         "te",      "trailer",
		"upgrade", "content-length",   "transfer-encoding",   "proxy-authorization", "http2-settings",
	};

	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		if (span_equals(name, ours[i]))
			return true;
	return false;
}

/* A server behind CGI would take "Content_Length" for the framing that was checked. */
static bool is_body_length_to_cgi(struct span name)
{
	return memchr(name.at, '_', name.len) &&
	       (span_is_for_cgi(name, "content-length") || span_is_for_cgi(name, "transfer-encoding"));
}

/* Whether the text, as a name, has the word somewhere, in any case of letters. */
static bool contains_word(struct span name, const char *word)
{
	for (size_t n = strlen(word); name.len >= n; name.at++, name.len--)
		if (strncasecmp(name.at, word, n) == 0)
			return true;
	return false;
}

/*
 * A secret would not be found in a part of a reply, or in another form or encoding of it. Whatever choice a header of
 * such a name offers, a list of all names would never be complete. Content-Encoding and Content-Range are of the
 * request's own body. A server behind CGI takes
 * "_" for "-".
 */
static bool asks_for_encoded_reply(const struct request_header *header)
{
	static const char *const words[] = { "range", "encoding", "charset" };
	static const char *const names[] = { "a-im", "im", "accept-features", "negotiate", "sec-websocket-extensions" };
	const struct span        name    = header->name;

	if (span_is_for_cgi(name, "content-encoding") || span_is_for_cgi(name, "content-range"))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (contains_word(name, words[i]) ||
		    (span_is_for_cgi(name, "accept") && contains_word(header->value, words[i])))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (span_is_for_cgi(name, names[i]))
			return true;
	return false;
}

/* Headers by which a server behind another proxy learns method or path: families, since each server has names of its
 * own. */
static bool overrides_method_or_path(struct span name)
{
	static const char *const families[] = { "x-original-",   "x-rewrite-", "x-forwarded-",
						"x-http-method", "x-method",   "x-replaced-",
						"x-envoy-",      "x-script-",  "x-real-u" };
	struct span              first;

	for (size_t i = 0; i < ARRAY_LEN(families); i++) {
		first = (struct span){ name.at, strlen(families[i]) };
		if (name.len >= first.len && span_is_for_cgi(first, families[i]))
			return true;
	}
	return contains_word(name, "override");
}

static bool contains_any_word(struct span text, const char *const *words)
{
	for (; *words; words++)
		if (contains_word(text, *words))
			return true;
	return false;
}

/*
 * A header that may carry a credential of the program's own: with it the server would act for another account than that
 * of the secret, as the sender's own, which may collect what the program can read. Words in names, since each server
 * has names of its own; not a list of what may pass, since each API has headers that it needs (Notion-Version). A
 * WebSocket has its credential in the list of its protocols.
 */
static bool may_be_credential(const struct request_header *header)
{
	static const char *const words[] = { "auth",   "cookie",     "token",      "key",       "secret",
					     "passw",  "passphrase", "credential", "signature", "jwt",
					     "bearer", "otp",        NULL };
	/* keys that open nothing */
	static const char *const others[] = { "idempotency", "websocket", "partition", NULL };

	if (span_is_for_cgi(header->name, "sec-websocket-protocol"))
		return contains_any_word(header->value, words);
	return contains_any_word(header->name, words) && !contains_any_word(header->name, others);
}

static void put_headers(struct out *o, const struct request_head *h, const struct request_edit *edit)
{
	for (unsigned i = 0; i < h->headers; i++) {
		const struct request_header *header = &h->header[i];
		struct span                  name   = header->name;
		bool is_left_out = is_hop_by_hop(name) || is_body_length_to_cgi(name) ||
			connection_header_names(h, name) ||
				   (edit->sets && may_be_credential(header)) ||
				   (edit->plain_reply && asks_for_encoded_reply(header)) ||
				   (edit->is_judged && overrides_method_or_path(name));

		for (size_t j = 0; j < edit->sets; j++)
			is_left_out |= span_is_for_cgi(name, edit->set[j].name);
		if (is_left_out)
			continue;
		put_span(o, header->name);
		put_text(o, ": ");
		put_span(o, header->value);
		put_text(o, "\r\n");
	}
}

/* --- */

size_t request_head_write(const struct request_head *h, const struct request_edit *edit, char *ret, size_t size)
{
	struct out o = { ret, size, false };
	char       digits[24];

	put_span(&o, h->method_text);
	put_text(&o, " ");
	put_span(&o, h->path);
	put_text(&o, h->minor ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n");
	put_header(&o, "Host", edit->authority);
	put_headers(&o, h, edit);
	if (edit->plain_reply)
		put_header(&o, "Accept-Encoding", "identity");
	for (size_t i = 0; i < edit->sets; i++)
		put_header(&o, edit->set[i].name, edit->set[i].value);
	if (h->framing == REQUEST_CHUNKED)
		put_header(&o, "Transfer-Encoding", "chunked");
	snprintf(digits, sizeof digits, "%llu", (unsigned long long)h->body_len);
	if (h->has_length)
		put_header(&o, "Content-Length", digits);
	if (h->upgrades)
		put_text(&o, "Connection: upgrade\r\nUpgrade: websocket\r\n");
	else if (!h->keeps) /* without a header, a connection of HTTP/1.1 stays */
		put_header(&o, "Connection", "close");
	put_text(&o, "\r\n");
	return o.is_short ? 0 : (size_t)(o.at - ret);
}
