/*
 * fuzz_request_head.c - the head of an HTTP request: what is written anew means what was read, and nothing else
 *
 * The first two bytes say where it is cut: more bytes change no answer.
 */
#define _GNU_SOURCE
#include "fuzz.h"
#include "request_head.h"

#include <strings.h>

enum { WRITTEN_MAX = HTTP_HEAD_MAX + 1024, OURS_MAX = 8, OUR_BYTES_MAX = 512 }; /* OURS: headers that are added */

static struct request_head whole, begun, again; /* large */

static enum http_outcome parse(const char *bytes, size_t len, struct request_head *ret)
{
	const char          *why = NULL;
	enum http_outcome o   = request_head_parse(bytes, len, ret, &why);

	must(o != HTTP_BAD || (why && *why && text_is_plain(why)));
	must(o != HTTP_MORE || len < HTTP_HEAD_MAX);
	return o;
}

static bool is_same(struct span a, struct span b)
{
	return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

static void must_be_sound(const struct request_head *h, size_t len)
{
	char canonical[NET_HOST_MAX];
	bool is_address;

	must(h->len > 0 && h->len <= len && h->headers <= REQUEST_HEADERS_MAX && h->minor <= 1);
	must_about(h->host, net_host_canonicalize(h->host, strlen(h->host), canonical, &is_address) &&
		   strcmp(canonical, h->host) == 0);
	must(h->form == REQUEST_AUTHORITY || h->path.len);
	must((h->framing == REQUEST_LENGTH) == (h->body_len > 0));
	must(!h->upgrades || (h->framing == REQUEST_NO_BODY && h->method == NET_METHOD_GET));
}

/* Of a name in any spelling that a server behind CGI takes for it. */
static unsigned count(const struct request_head *h, const char *name, struct span *value)
{
	unsigned n = 0;

	for (unsigned i = 0; i < h->headers; i++) {
		char text[64] = "";

		if (h->header[i].name.len != strlen(name))
			continue;
		memcpy(text, h->header[i].name.at, h->header[i].name.len);
		for (char *c = text; *c; c++)
			*c = *c == '_' ? '-' : *c;
		if (strcasecmp(text, name) != 0)
			continue;
		*value = h->header[i].value;
		n++;
	}
	return n;
}

static void must_have(const struct request_head *h, const char *name, const char *value)
{
	struct span found = { 0 };

	must_about(name, count(h, name, &found) == 1 && is_same(found, (struct span){ value, strlen(value) }));
}

/* With a secret, as to a server of which replies are read. */
static void must_mean_the_same(const struct request_head *h)
{
	static char              text[WRITTEN_MAX];
	const struct request_set set  = { "authorization", "Bearer the-secret" };
	struct request_edit      edit = { "shop.example:8443", &set, 1, true, true };
	struct span              value;
	size_t                   len = request_head_write(h, &edit, text, sizeof text), small = 0;
	static char              less[256];

	must(len > 0 && len <= sizeof text);
	must(parse(text, len, &again) == HTTP_DONE && again.len == len);
	must(is_same(h->method_text, again.method_text) && is_same(h->path, again.path) && h->minor == again.minor);
	must(strcmp(again.host, "shop.example") == 0 && again.port == 8443);
	must(h->framing == again.framing && h->body_len == again.body_len && h->upgrades == again.upgrades);
	must_have(&again, "authorization", set.value);
	must_have(&again, "accept-encoding", "identity");
	must(again.keeps == h->keeps || h->upgrades);
	must(count(&again, "content-length", &value) + count(&again, "transfer-encoding", &value) <= 1 && count(&again, "proxy-authorization", &value) == 0);
	small = request_head_write(h, &edit, less, sizeof less);
	must(small == (len <= sizeof less ? len : 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum http_outcome o, early;
	size_t               len, cut;
	char                *exact;

	if (size < 2)
		return 0;
	len   = size - 2;
	cut   = (size_t)(data[0] << 8 | data[1]) % (len + 1);
	exact = malloc(len + !len); /* a step too far is seen */
	must(exact);
	memcpy(exact, data + 2, len);
	o     = parse(exact, len, &whole);
	early = parse(exact, cut, &begun);
	must(early == HTTP_MORE || early == o);
	must(early != HTTP_DONE || begun.len == whole.len);
	if (o == HTTP_DONE) {
		must_be_sound(&whole, len);
		if (whole.form != REQUEST_AUTHORITY && whole.headers + OURS_MAX <= REQUEST_HEADERS_MAX && whole.len + OUR_BYTES_MAX <= HTTP_HEAD_MAX)
			must_mean_the_same(&whole);
	}
	free(exact);
	return 0;
}
