#include "request_head.h"
#include "tap.h"

static struct request_head head;

/* clang-format off */
#define H "Host: example.org\r\n"
static const struct {
	const char *name, *bytes, *says; /* says "": fine */
} rows[] = {
	{ "a path", "GET /a?b HTTP/1.1\r\n" H "\r\n", "" },
	{ "a URL", "GET http://example.org/a HTTP/1.1\r\n" H "\r\n", "" },
	{ "a URL without a path", "GET http://example.org HTTP/1.1\r\n" H "\r\n", "" },
	{ "a URL with its own port", "GET http://example.org:80/ HTTP/1.1\r\n" H "\r\n", "" },
	{ "a URL in other letters", "GET HTTP://EXAMPLE.org./ HTTP/1.1\r\n" H "\r\n", "" },
	{ "HTTP/1.0 with a URL needs no Host", "GET http://example.org/ HTTP/1.0\r\n\r\n", "" },
	{ "CONNECT", "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n", "" },
	{ "CONNECT without Host, as some programs write it", "CONNECT example.org:443 HTTP/1.0\r\n\r\n", "" },
	{ "CONNECT with a Host without port", "CONNECT example.org:443 HTTP/1.1\r\n" H "\r\n", "" },
	{ "CONNECT to IPv6", "CONNECT [2001:db8::1]:443 HTTP/1.1\r\n\r\n", "" },
	{ "OPTIONS of all", "OPTIONS * HTTP/1.1\r\n" H "\r\n", "" },
	{ "a body of a length", "POST / HTTP/1.1\r\n" H "Content-Length: 12\r\n\r\n", "" },
	{ "a body of chunks", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n", "" },
	{ "blanks around a value", "GET / HTTP/1.1\r\nHost: \t example.org \t\r\n\r\n", "" },
	{ "a value above ASCII", "GET / HTTP/1.1\r\n" H "X: \xc3\xbc\r\n\r\n", "" },
	{ "an empty value", "GET / HTTP/1.1\r\n" H "X:\r\n\r\n", "" },
	{ "a path in UTF-8", "GET /\xc3\xbc HTTP/1.1\r\n" H "\r\n", "" },
	{ "dots in a path: rules with paths judge them", "GET /a/../%2e%2e/b HTTP/1.1\r\n" H "\r\n", "" },
	{ "another method", "PROPFIND / HTTP/1.1\r\n" H "\r\n", "" },

	{ "an empty line first is refused", "\r\nGET / HTTP/1.1\r\n" H "\r\n", "invalid method" },
	{ "HTTP/2 is refused", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "target" },
	{ "HTTP/1.2 is refused", "GET / HTTP/1.2\r\n" H "\r\n", "HTTP/1.1" },
	{ "HTTP/0.9 is refused", "GET /\r\n\r\n", "three parts" },
	{ "a version in lower case is refused", "GET / http/1.1\r\n" H "\r\n", "HTTP/1.1" },
	{ "two blanks are refused", "GET  / HTTP/1.1\r\n" H "\r\n", "target" },
	{ "a blank behind the version is refused", "GET / HTTP/1.1 \r\n" H "\r\n", "HTTP/1.1" },
	{ "a tab is refused", "GET\t/ HTTP/1.1\r\n" H "\r\n", "invalid method" },
	{ "an LF alone is refused", "GET / HTTP/1.1\n" H "\r\n", "LF alone" },
	{ "an LF alone behind a header is refused", "GET / HTTP/1.1\r\nHost: example.org\n\r\n", "LF alone" },
	{ "a CR alone is refused", "GET / HTTP/1.1\r\nX: a\rb\r\n" H "\r\n", "LF alone" },
	{ "a NUL is refused", "GET / HTTP/1.1\r\nX: a\vb\r\n" H "\r\n", "control character" },
	{ "a header that goes on is refused", "GET / HTTP/1.1\r\n" H "X: a\r\n b\r\n\r\n", "next line" },
	{ "a header that goes on at once is refused", "GET / HTTP/1.1\r\n Host: example.org\r\n\r\n", "next line" },
	{ "a blank before the colon is refused", "GET / HTTP/1.1\r\nHost : example.org\r\n\r\n", "header name" },
	{ "a header without a colon is refused", "GET / HTTP/1.1\r\n" H "X\r\n\r\n", "header name" },
	{ "a header without a name is refused", "GET / HTTP/1.1\r\n" H ": x\r\n\r\n", "header name" },
	{ "no Host is refused", "GET / HTTP/1.1\r\n\r\n", "no Host" },
	{ "no Host in HTTP/1.0 with a path is refused", "GET / HTTP/1.0\r\n\r\n", "no Host" },
	{ "two Hosts are refused", "GET / HTTP/1.1\r\n" H H "\r\n", "more than one Host" },
	{ "a Host of other letters is a second one", "GET / HTTP/1.1\r\n" H "hOST: evil.example\r\n\r\n", "more than one Host" },
	{ "an empty Host is refused", "GET / HTTP/1.1\r\nHost:\r\n\r\n", "Host is not a host" },
	{ "a Host with a user is refused", "GET / HTTP/1.1\r\nHost: me@example.org\r\n\r\n", "Host is not a host" },
	{ "a Host with a list is refused", "GET / HTTP/1.1\r\nHost: example.org, evil.example\r\n\r\n", "Host is not a host" },
	{ "a Host with a path is refused", "GET / HTTP/1.1\r\nHost: example.org/\r\n\r\n", "Host is not a host" },
	{ "a Host with port 0 is refused", "GET / HTTP/1.1\r\nHost: example.org:0\r\n\r\n", "Host is not a host" },
	{ "a Host that is a decimal address is refused", "GET / HTTP/1.1\r\nHost: 2130706433\r\n\r\n", "Host is not a host" },
	{ "another Host than the URL's is refused", "GET http://example.org/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", "does not match" },
	{ "another port than the URL's is refused", "GET http://example.org:8080/ HTTP/1.1\r\n" H "\r\n", "does not match" },
	{ "another Host than CONNECT's is refused", "CONNECT example.org:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", "does not match" },
	{ "a URL with a user is refused", "GET http://example.org@evil.example/ HTTP/1.1\r\n" H "\r\n", "invalid host" },
	{ "a URL with user and password is refused", "GET http://example.org:80@evil.example/ HTTP/1.1\r\n" H "\r\n", "invalid host" },
	{ "a URL with a backslash is refused", "GET http://example.org\\@evil.example/ HTTP/1.1\r\n" H "\r\n", "invalid host" },
	{ "a URL of another scheme is refused", "GET ftp://example.org/ HTTP/1.1\r\n" H "\r\n", "neither a path" },
	{ "a query without a path is refused", "GET http://example.org?x HTTP/1.1\r\n" H "\r\n", "without a path" },
	{ "a target that is a name is refused", "GET example.org HTTP/1.1\r\n" H "\r\n", "neither a path" },
	{ "a star for GET is refused", "GET * HTTP/1.1\r\n" H "\r\n", "neither a path" },
	{ "a fragment is refused", "GET /a#b HTTP/1.1\r\n" H "\r\n", "control character" },
	{ "a target with a control character is refused", "GET /a\x7f HTTP/1.1\r\n" H "\r\n", "control character" },
	{ "CONNECT with a user is refused", "CONNECT me@example.org:443 HTTP/1.1\r\n\r\n", "host:port" },
	{ "CONNECT without a port is refused", "CONNECT example.org HTTP/1.1\r\n\r\n", "host:port" },
	{ "CONNECT to port 0 is refused", "CONNECT example.org:0 HTTP/1.1\r\n\r\n", "host:port" },
	{ "CONNECT to port 65536 is refused", "CONNECT example.org:65536 HTTP/1.1\r\n\r\n", "host:port" },
	{ "CONNECT to a URL is refused", "CONNECT https://example.org:443 HTTP/1.1\r\n\r\n", "host:port" },
	{ "CONNECT to IPv6 without brackets is refused", "CONNECT 2001:db8::1:443 HTTP/1.1\r\n\r\n", "host:port" },
	{ "CONNECT to a name in brackets is refused", "CONNECT [example.org]:443 HTTP/1.1\r\n\r\n", "host:port" },
	{ "CONNECT to a short address is refused", "CONNECT 127.1:443 HTTP/1.1\r\n\r\n", "host:port" },
	{ "CONNECT with a body is refused", "CONNECT example.org:443 HTTP/1.1\r\nContent-Length: 1\r\n\r\n", "CONNECT has no body" },
	{ "Content-Length and Transfer-Encoding are refused", "POST / HTTP/1.1\r\n" H "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "and Transfer-Encoding" },
	{ "two Content-Lengths are refused", "POST / HTTP/1.1\r\n" H "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", "more than once" },
	{ "a list of Content-Lengths is refused", "POST / HTTP/1.1\r\n" H "Content-Length: 1, 1\r\n\r\n", "not a number" },
	{ "a Content-Length with a sign is refused", "POST / HTTP/1.1\r\n" H "Content-Length: +1\r\n\r\n", "not a number" },
	{ "a Content-Length in hex is refused", "POST / HTTP/1.1\r\n" H "Content-Length: 0x1\r\n\r\n", "not a number" },
	{ "an empty Content-Length is refused", "POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n", "not a number" },
	{ "a Content-Length that wraps around is refused", "POST / HTTP/1.1\r\n" H "Content-Length: 18446744073709551617\r\n\r\n", "not a number" },
	{ "a Content-Length above what is signed is refused", "POST / HTTP/1.1\r\n" H "Content-Length: 9223372036854775808\r\n\r\n", "not a number" },
	{ "two codings are refused", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n", "chunked alone" },
	{ "identity is refused", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: identity\r\n\r\n", "chunked alone" },
	{ "chunked with a control character before it is refused", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: \x0b" "chunked\r\n\r\n", "control character" },
	{ "chunked in quotes is refused", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: \"chunked\"\r\n\r\n", "chunked alone" },
	{ "chunked twice is refused", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "more than once" },
	{ "chunked in HTTP/1.0 is refused", "POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n", "chunked alone" },
};
/* clang-format on */

static enum http_outcome parse(const char *text, const char **why)
{
	*why = "";
	return request_head_parse(text, strlen(text), &head, why);
}

static void test_rows(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *why;
		bool        fine = parse(rows[i].bytes, &why) == HTTP_DONE;

		if (!tap_ok(fine ? !*rows[i].says && head.len == strlen(rows[i].bytes) : *rows[i].says && strstr(why, rows[i].says), "%s", rows[i].name))
			printf("#   %s\n", fine ? "fine" : why);
	}
}

static bool waits_for_all(const char *text)
{
	const char *why;

	for (size_t i = 0; i < strlen(text); i++)
		if (request_head_parse(text, i, &head, &why) != HTTP_MORE)
			return false;
	return true;
}

static bool is(struct span s, const char *text)
{
	return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

static void test_parts(void)
{
	const char *why, *text = "POST http://Example.org:8080/a/b?c HTTP/1.1\r\nHost: example.org:8080\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n";

	tap_ok(parse(text, &why) == HTTP_DONE && head.form == REQUEST_ABSOLUTE && head.scheme == NET_SCHEME_HTTP && head.method == NET_METHOD_POST &&
		       !strcmp(head.host, "example.org") && head.port == 8080 && is(head.path, "/a/b?c") && head.framing == REQUEST_LENGTH && head.body_len == 5,
	       "the parts of a request");
	tap_ok(is((struct span){ text + head.len, 5 }, "hello"), "the body begins behind the empty line");
	tap_ok(waits_for_all("GET /a HTTP/1.1\r\n" H "X: y\r\n\r\n"), "every byte is waited for");
	tap_ok(parse("GET / HTTP/1.1\r\nHost: [2001:DB8::1]:8080\r\n\r\n", &why) == HTTP_DONE && head.is_address && !strcmp(head.host, "2001:db8::1"), "an address in Host");
	tap_ok(parse("TRACE / HTTP/1.1\r\n" H "\r\n", &why) == HTTP_DONE && head.method == 0, "TRACE is no method that may be let through");
	tap_ok(parse("PROPFIND / HTTP/1.1\r\n" H "\r\n", &why) == HTTP_DONE && head.method == NET_METHOD_OTHER, "another method is another");
	tap_ok(parse("POST / HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n", &why) == HTTP_DONE && head.framing == REQUEST_NO_BODY && head.has_length, "a length of 0");
}

static void test_bounds(void)
{
	static char big[HTTP_HEAD_MAX + 100];
	const char *why = "";
	size_t      n;

	n = (size_t)snprintf(big, sizeof big, "GET / HTTP/1.1\r\n" H "X: ");
	memset(big + n, 'x', sizeof big - n);
	tap_ok(request_head_parse(big, HTTP_HEAD_MAX - 1, &head, &why) == HTTP_MORE, "up to 64 KiB are waited for");
	tap_ok(request_head_parse(big, HTTP_HEAD_MAX, &head, &why) == HTTP_BAD && strstr(why, "64 KiB"), "a longer head is refused");
	n = (size_t)snprintf(big, sizeof big, "GET / HTTP/1.1\r\n" H);
	for (int i = 0; i < REQUEST_HEADERS_MAX; i++)
		n += (size_t)snprintf(big + n, sizeof big - n, "X: y\r\n");
	snprintf(big + n, sizeof big - n, "\r\n");
	tap_ok(parse(big, &why) == HTTP_BAD && strstr(why, "too many"), "one header too many is refused");
	tap_ok(request_head_parse("GET / HTTP/1.1\r\nX: a\0b\r\n\r\n", 26, &head, &why) == HTTP_BAD && strstr(why, "NUL"), "a NUL is refused");
}

/* --- written anew --- */

static const char *written(const char *text, const struct request_edit *edit)
{
	static char out[4000];
	const char *why;
	size_t      n = parse(text, &why) == HTTP_DONE ? request_head_write(&head, edit, out, sizeof out - 1) : 0;

	out[n] = 0;
	return out;
}

static void test_written(void)
{
	static const struct request_set token[] = { { "x-api-key", "s3cret" } };
	const struct request_edit       plain = { .authority = "example.org" }, secret = { .authority = "example.org", .set = token, .sets = 1, .plain_reply = true };
	const struct request_edit       judged = { .authority = "example.org", .is_judged = true };

	tap_is(written("GET http://example.org/a?b HTTP/1.1\r\n" H "Accept: */*\r\n\r\n", &plain),
	       "GET /a?b HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\n\r\n", "a URL becomes a path");
	tap_is(written("POST / HTTP/1.1\r\nContent-Length: 007\r\n" H "\r\n", &plain),
	       "POST / HTTP/1.1\r\nHost: example.org\r\nContent-Length: 7\r\n\r\n", "the length is written anew");
	tap_is(written("POST / HTTP/1.1\r\nTransfer-Encoding: CHUNKED\r\n" H "\r\n", &plain),
	       "POST / HTTP/1.1\r\nHost: example.org\r\nTransfer-Encoding: chunked\r\n\r\n", "the coding is written anew");
	tap_is(written("GET / HTTP/1.0\r\n" H "\r\n", &plain), "GET / HTTP/1.0\r\nHost: example.org\r\nConnection: close\r\n\r\n", "an old version stays old");
	tap_is(written("GET / HTTP/1.1\r\n" H "Connection: keep-alive, x-hop\r\nKeep-Alive: 5\r\nX-Hop: 1\r\nX-Hop2: 2\r\nTE: trailers\r\nTrailer: x\r\n"
		       "Proxy-Connection: close\r\nProxy-Authorization: Basic eA==\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n",
		       &plain),
	       "GET / HTTP/1.1\r\nHost: example.org\r\nX-Hop2: 2\r\nConnection: close\r\n\r\n", "what concerns one hop does not go on");
	tap_is(written("GET / HTTP/1.1\r\n" H "Content_Length: 7\r\nTransfer_Encoding: chunked\r\n\r\n", &plain),
	       "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", "what CGI would take for the framing does not go on");
	tap_is(written("GET / HTTP/1.1\r\n" H "Upgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Key: x\r\n\r\n", &plain),
	       "GET / HTTP/1.1\r\nHost: example.org\r\nSec-WebSocket-Key: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", "a websocket goes on");
	tap_is(written("GET / HTTP/1.1\r\n" H "Upgrade: websocket, h2c\r\nConnection: Upgrade\r\n\r\n", &plain),
	       "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", "a list of upgrades does not");
	tap_is(written("GET / HTTP/1.1\r\n" H "X-Api-Key: mine\r\nx_API_key: mine\r\nX-Other: stays\r\nAccept-Encoding: gzip\r\n\r\n", &secret),
	       "GET / HTTP/1.1\r\nHost: example.org\r\nX-Other: stays\r\nAccept-Encoding: identity\r\nx-api-key: s3cret\r\n\r\n",
	       "a header that is set takes the place of the program's own, in every spelling");
	tap_is(written("GET / HTTP/1.1\r\n" H "Range: bytes=0-1\r\nRequest-Range: x\r\nX_Range: x\r\nIf-Range: x\r\nA-IM: vcdiff\r\na_im: x\r\nAccept-Charset: utf-16\r\n"
		       "X-Accept-Encoding: gzip\r\nTE: gzip\r\nAccept: text/html;charset=utf-16\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
		       &secret),
	       "GET / HTTP/1.1\r\nHost: example.org\r\nAccept-Encoding: identity\r\nx-api-key: s3cret\r\n\r\n",
	       "where a secret goes, no header that chooses a part, a form or an encoding of the reply does");
	tap_is(written("GET / HTTP/1.1\r\n" H "Authorization: mine\r\nProxy-Authorization: mine\r\nCookie: mine\r\napi-key: mine\r\nX_Api_Key2: mine\r\nX-Goog-Api-Key: mine\r\n"
		       "X-Auth-Token: mine\r\nPRIVATE-TOKEN: mine\r\nX-Amz-Security-Token: mine\r\nOcp-Apim-Subscription-Key: mine\r\nCB-ACCESS-PASSPHRASE: mine\r\n"
		       "Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.mine\r\nMcp-Session-Id: stays\r\n\r\n",
		       &secret),
	       "GET / HTTP/1.1\r\nHost: example.org\r\nMcp-Session-Id: stays\r\nAccept-Encoding: identity\r\nx-api-key: s3cret\r\n\r\n",
	       "where a secret goes, no credential of the program's own goes, whatever its header is called");
	tap_is(written("GET / HTTP/1.1\r\n" H "Authorization: mine\r\nCookie: mine\r\nX-Api-Key: mine\r\n\r\n", &plain),
	       "GET / HTTP/1.1\r\nHost: example.org\r\nAuthorization: mine\r\nCookie: mine\r\nX-Api-Key: mine\r\n\r\n", "without a secret they go on");
	tap_is(written("PUT / HTTP/1.1\r\n" H "Accept: application/vnd.github+json\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Range: bytes 0-1/2\r\n"
		       "X-GitHub-Api-Version: 2022-11-28\r\nanthropic-version: 2023-06-01\r\nanthropic-beta: a,b\r\nOpenAI-Organization: o\r\nOpenAI-Beta: assistants=v2\r\n"
		       "X-Stainless-Lang: python\r\nx-stainless-read-timeout: 600\r\nIdempotency-Key: k\r\nSec-WebSocket-Key: w\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\nIf-None-Match: \"e\"\r\nUser-Agent: u\r\nContent-Length: 0\r\n\r\n",
		       &secret),
	       "PUT / HTTP/1.1\r\nHost: example.org\r\nAccept: application/vnd.github+json\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Range: bytes 0-1/2\r\n"
	       "X-GitHub-Api-Version: 2022-11-28\r\nanthropic-version: 2023-06-01\r\nanthropic-beta: a,b\r\nOpenAI-Organization: o\r\nOpenAI-Beta: assistants=v2\r\n"
	       "X-Stainless-Lang: python\r\nx-stainless-read-timeout: 600\r\nIdempotency-Key: k\r\nSec-WebSocket-Key: w\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\nIf-None-Match: \"e\"\r\nUser-Agent: u\r\nAccept-Encoding: identity\r\nx-api-key: s3cret\r\n"
	       "Content-Length: 0\r\n\r\n",
	       "the headers of the clients of Anthropic, OpenAI and GitHub go on");
	tap_is(written("GET / HTTP/1.1\r\n" H "X-Original-URI: /b\r\nX_Original_URL: /b\r\nX-Rewrite-URL: /b\r\nX-Forwarded-Uri: /b\r\nX-Forwarded-Method: PUT\r\n"
		       "X-HTTP-Method-Override: PUT\r\nX-Method-Override: PUT\r\nX-Envoy-Original-Path: /b\r\nX-Other: stays\r\n\r\n",
		       &judged),
	       "GET / HTTP/1.1\r\nHost: example.org\r\nX-Other: stays\r\n\r\n",
	       "where rules judge method and path, no header that may name others goes on");
	tap_is(written("GET / HTTP/1.1\r\n" H "Connection: x-api-key\r\n\r\n", &secret),
	       "GET / HTTP/1.1\r\nHost: example.org\r\nAccept-Encoding: identity\r\nx-api-key: s3cret\r\n\r\n",
	       "Connection cannot take a header away that is set");
}

static void test_short_buffers(void)
{
	const struct request_edit plain = { .authority = "example.org" };
	const char               *why;
	char                      out[100];
	size_t                    n;

	parse("GET / HTTP/1.1\r\n" H "\r\n", &why);
	n = request_head_write(&head, &plain, out, sizeof out);
	tap_ok(n && request_head_write(&head, &plain, out, n) == n, "it fits exactly");
	for (size_t i = 0; i < n; i++)
		if (request_head_write(&head, &plain, out, i) != 0)
			n = 0;
	tap_ok(n, "it is never cut off");
}

int main(void)
{
	test_rows();
	test_parts();
	test_bounds();
	test_written();
	test_short_buffers();
	return tap_done();
}
