/*
 * fuzz_reply.c - replies to requests that had a secret: it is in none of them, however reads and chunks divide it
 *
 * The first byte says how it is cut. What a reader makes of the chunks that come out is looked at, too.
 */
#define _GNU_SOURCE
#include "fuzz.h"
#include "server_reply.h"

#define SECRET  "sesame"
#define CHUNKED "\nTransfer-Encoding: chunked\r\n"

enum { REPLIES_MAX = 4096, MADE_MAX = 16 * REPLIES_MAX };

static struct proxy_config config = { .secrets = 1, .secret[0] = { .host = "shop.example", .port = 443, .secret_len = sizeof SECRET - 1, .value = SECRET } };

static char   made[MADE_MAX];
static size_t made_len;
static bool   has_switched;

static bool pass(const char *bytes, size_t len, size_t pace)
{
	static struct reply r;
	size_t              from = 0, have = 0, taken = 1, out_len = 1;
	bool                ok = true;

	made_len = 0;
	reply_init(&r, &config, "shop.example", 443, false, len % 2);
	while (ok && !r.is_done && (have < len || taken || out_len)) {
		char *out = malloc(have + pace - from + REPLY_ROOM), *in;

		have = have + pace < len ? have + pace : len;
		in   = malloc(have - from + 1);
		must(out && in);
		memcpy(in, bytes + from, have - from);
		ok = reply_step(&r, (struct span){ in, have - from }, have == len, out, have - from + REPLY_ROOM, &taken, &out_len);
		must(taken <= have - from && out_len <= have - from + REPLY_ROOM && made_len + out_len <= sizeof made);
		memcpy(made + made_len, out, out_len);
		made_len += out_len;
		from += taken;
		free(in);
		free(out);
	}
	has_switched = r.has_switched;
	must(!ok || r.is_done || from == len || r.has_switched); /* of a WebSocket, a frame that is cut stays */
	return ok;
}

/* Of the chunks at `at`, in place: only the bytes. Ends where there is no whole one any more. */
static size_t unchunk(char *at, size_t len)
{
	size_t to = 0;

	for (size_t from = 0; len - from > 10;) {
		size_t n = strtoul(at + from, NULL, 16);

		if (n == 0 || n > len || from + 12 + n > len)
			break;
		memmove(at + to, at + from + 10, n);
		to += n;
		from += 12 + n;
	}
	return to;
}

static void must_not_have_secret(const char *at, size_t len)
{
	must(!memmem(at, len, SECRET, sizeof SECRET - 1));
}

/* Of the frames of a WebSocket, in place: only the bytes of messages. A control frame is looked at alone. Heads of frames are no text: the length may be an 's'. */
static size_t unframe(char *at, size_t len)
{
	size_t to = 0;

	for (size_t from = 0; len - from >= 2;) {
		size_t n = (uint8_t)at[from + 1], head = n == 127 ? 10 : n == 126 ? 4 : 2;

		if (head > len - from)
			break;
		if (head > 2)
			n = 0;
		for (size_t i = 2; i < head; i++)
			n = n << 8 | (uint8_t)at[from + i];
		must(n <= len - from - head);
		if (at[from] & 8) {
			must_not_have_secret(at + from + head, n);
		} else {
			memmove(at + to, at + from + head, n); /* may overwrite the head of this frame */
			to += n;
		}
		from += head + n;
	}
	return to;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *head;
	bool  ok;

	if (size < 1 || size > REPLIES_MAX)
		return 0;
	ok = pass((const char *)data + 1, size - 1, 1u + data[0]);
	head = memmem(made, made_len, "\r\n\r\n", 4);
	if (has_switched && head) {
		while (made_len - (size_t)(head + 4 - made) > 5 && memcmp(head + 4, "HTTP/", 5) == 0) /* after one of 103; no frame begins so */
			head = memmem(head + 4, made_len - (size_t)(head + 4 - made), "\r\n\r\n", 4);
		must_not_have_secret(made, (size_t)(head + 4 - made));
		must_not_have_secret(head + 4, unframe(head + 4, made_len - (size_t)(head + 4 - made)));
		return 0;
	}
	must_not_have_secret(made, made_len);
	if (ok && head && memmem(made, (size_t)(head + 2 - made), CHUNKED, sizeof CHUNKED - 1) && made_len - (size_t)(head + 4 - made) > 10) {
		size_t n = unchunk(head + 4, made_len - (size_t)(head + 4 - made));

		must_not_have_secret(head + 4, n);
	}
	return 0;
}
