#include "request_body.h"
#include "tap.h"

/* clang-format off */
static const struct {
	const char *name, *bytes, *body, *rest; /* body NULL: malformed */
} chunks[] = {
	{ "one chunk", "5\r\nhello\r\n0\r\n\r\n", "hello", "" },
	{ "two chunks", "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world", "" },
	{ "no chunk", "0\r\n\r\n", "", "" },
	{ "hex digits of both cases", "00A\r\n0123456789\r\na\r\n0123456789\r\n000\r\n\r\n", "01234567890123456789", "" },
	{ "a second request is not taken", "1\r\nx\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n", "x", "GET / HTTP/1.1\r\n\r\n" },
	{ "trailers are left out", "1\r\nx\r\n0\r\nA: b\r\nContent-Length: 7\r\n\r\nrest", "x", "rest" },
	{ "an extension is malformed", "1;a=b\r\nx\r\n0\r\n\r\n", NULL, "" },
	{ "a blank behind a size is malformed", "1 \r\nx\r\n0\r\n\r\n", NULL, "" },
	{ "a size with 0x is malformed", "0x1\r\nx\r\n0\r\n\r\n", NULL, "" },
	{ "a size with a sign is malformed", "+1\r\nx\r\n0\r\n\r\n", NULL, "" },
	{ "an empty size is malformed", "\r\nx\r\n0\r\n\r\n", NULL, "" },
	{ "a size that wraps around is malformed", "10000000000000001\r\nx\r\n0\r\n\r\n", NULL, "" },
	{ "an LF alone behind a size is malformed", "1\nx\r\n0\r\n\r\n", NULL, "" },
	{ "a CR alone behind a size is malformed", "1\rx\r\n0\r\n\r\n", NULL, "" },
	{ "an LF alone behind a chunk is malformed", "1\r\nx\n0\r\n\r\n", NULL, "" },
	{ "a chunk longer than its size is malformed", "1\r\nxy\r\n0\r\n\r\n", NULL, "" },
	{ "an LF alone at the end is malformed", "1\r\nx\r\n0\r\n\n", NULL, "" },
	{ "a trailer without a name is malformed", "0\r\n: x\r\n\r\n", NULL, "" },
	{ "a trailer that goes on is malformed", "0\r\nA: b\r\n c\r\n\r\n", NULL, "" },
	{ "a trailer with an LF alone is malformed", "0\r\nA: b\nB: c\r\n\r\n", NULL, "" },
};
/* clang-format on */

struct run {
	char   out[4000];
	size_t made, taken;
	bool   is_done, has_failed;
};

/* As a connection does it: so much more is there each time, and so much room. */
static struct run run(const struct request_head *h, const char *bytes, size_t pace, size_t room)
{
	struct request_body b;
	struct run          r   = { .made = 0 };
	size_t              len = strlen(bytes), there = 0;

	request_body_init(&b, h);
	while (!b.is_done && !r.has_failed && (there < len || r.taken < there)) {
		size_t taken, made;

		there        = there + pace < len ? there + pace : len;
		r.has_failed = !request_body_copy_step(&b, (struct span){ bytes + r.taken, there - r.taken },
						       r.out + r.made, room, &taken, &made);
		r.taken += taken;
		r.made += made;
		if (there == len && !taken && !made)
			break;
	}
	r.is_done = b.is_done;
	return r;
}

/* What a strict reader finds in it: our own, whose frames the rows above are about. */
static bool reads_as(const struct run *r, const char *body)
{
	char   text[4000] = "";
	size_t n = 0, at = 0, size;

	while (sscanf(r->out + at, "%zx", &size) == 1 && size) {
		at = (size_t)(strstr(r->out + at, "\r\n") - r->out) + 2;
		memcpy(text + n, r->out + at, size);
		n += size;
		at += size + 2;
	}
	return strcmp(text, body) == 0 && strcmp(r->out + at, "0\r\n\r\n") == 0;
}

static void test_chunks(void)
{
	const struct request_head h = { .framing = REQUEST_CHUNKED };
	static const size_t       paces[][2] = { { 1, REQUEST_BODY_ROOM }, { 1000, REQUEST_BODY_ROOM }, { 1000, 1000 }, { 3, 1000 } };

	for (size_t i = 0; i < ARRAY_LEN(chunks); i++) {
		bool ok = true;

		for (size_t p = 0; p < ARRAY_LEN(paces); p++) {
			struct run r = run(&h, chunks[i].bytes, paces[p][0], paces[p][1]);

			ok &= chunks[i].body ? r.is_done && reads_as(&r, chunks[i].body) && !strcmp(chunks[i].bytes + r.taken, chunks[i].rest) : r.has_failed && !r.is_done;
		}
		tap_ok(ok, "%s, at any pace", chunks[i].name);
	}
}

static void test_length(void)
{
	struct request_head h = { .framing = REQUEST_LENGTH, .body_len = 5 };
	struct run          r = run(&h, "helloGET / HTTP/1.1\r\n", 1000, 1000);

	tap_ok(r.is_done && r.taken == 5 && r.made == 5 && !memcmp(r.out, "hello", 5), "a length is kept to: a second request is not taken");
	r = run(&h, "hello", 1, REQUEST_BODY_ROOM);
	tap_ok(r.is_done && !memcmp(r.out, "hello", 5), "byte by byte");
	r = run(&h, "hell", 1000, 1000);
	tap_ok(!r.is_done && !r.has_failed && r.made == 4, "a body that is not all there is waited for");
	h.framing = REQUEST_NO_BODY;
	r         = run(&h, "x", 1, 1000);
	tap_ok(r.is_done && r.taken == 0, "without a body nothing is taken");
}

static void test_long_trailers(void)
{
	static char               text[20000] = "0\r\nA: ";
	const struct request_head h           = { .framing = REQUEST_CHUNKED };

	memset(text + 6, 'x', sizeof text - 7);
	tap_ok(run(&h, text, 100, 1000).has_failed, "trailers without an end are refused");
}

int main(void)
{
	test_chunks();
	test_length();
	test_long_trailers();
	return tap_done();
}
