#define _GNU_SOURCE
#include "server_reply.h"
#include "tap.h"

#define SECRET "ghp_0123456789abcdef"
#define STARS  "********************"
#define OK     "HTTP/1.1 200 OK\r\n"
#define CHUNKS OK "Transfer-Encoding: chunked\r\n\r\n"

static struct proxy_config config = { .secrets = 1, .secret[0] = { .host = "api.example.org", .port = 443, .secret_from = 7, .secret_len = sizeof SECRET - 1, .value = "Bearer " SECRET } };

/* A reader of the reply: head, then the bytes of its body. */
static struct {
	char   text[1 << 18];
	size_t len;
	bool   is_good, is_done, closes;
} got;

static void pass_of(const char *bytes, size_t len, size_t pace, const struct proxy_config *secrets, bool is_of_head, bool upgrades)
{
	static char         out[REPLY_ROOM + (1 << 18)];
	static struct reply r;
	size_t              from = 0, have = 0, taken = 1, made = 1;

	got.len     = 0;
	got.is_good = true;
	reply_init(&r, secrets, "api.example.org", 443, is_of_head, upgrades);
	while (got.is_good && !r.is_done && (have < len || taken || made)) {
		have        = have + pace < len ? have + pace : len;
		got.is_good = reply_step(&r, (struct span){ bytes + from, have - from }, have == len, out, sizeof out, &taken, &made);
		from += taken;
		memcpy(got.text + got.len, out, made);
		got.len += made;
	}
	got.text[got.len] = 0;
	got.is_done       = r.is_done;
	got.closes        = r.closes;
}

static void pass(const char *bytes, size_t len, size_t pace)
{
	pass_of(bytes, len, pace, &config, false, false);
}

/* In place of chunks what is in them; "<cut>" where the last one is missing. */
static void unchunk(void)
{
	char *head = strstr(got.text, "\r\n\r\n"), *to = head ? head + 4 : NULL, *at = to;

	if (!head || !strstr(got.text, "chunked"))
		return;
	for (;;) {
		size_t n = strtoul(at, &at, 16);

		if (n == 0)
			break;
		memmove(to, at + 2, n);
		to += n;
		at += n + 4;
	}
	strcpy(to, got.is_done ? "" : "<cut>");
}

/* clang-format off */
static const struct {
	const char *name, *reply, *seen; /* seen NULL: refused */
} rows[] = {
	{ "a reply without a secret is not changed", OK "Content-Length: 5\r\n\r\nhello", OK "Content-Length: 5\r\n\r\nhello" },
	{ "a secret in the head", OK "X: " SECRET "\r\n\r\n", OK "X: " STARS "\r\n\r\n" },
	{ "a secret in the body", OK "\r\n<" SECRET ">", OK "\r\n<" STARS ">" },
	{ "a secret in one chunk", CHUNKS "16\r\n<" SECRET ">\r\n0\r\n\r\n", CHUNKS "<" STARS ">" },
	{ "a secret that two chunks divide", CHUNKS "5\r\n<ghp_\r\n11\r\n0123456789abcdef>\r\n0\r\n\r\n", CHUNKS "<" STARS ">" },
	{ "a secret in chunks of one byte", CHUNKS "1\r\ng\r\n1\r\nh\r\n1\r\np\r\n1\r\n_\r\n1\r\n0\r\n1\r\n1\r\n00001;x=y\r\n2\r\nd\r\n3456789abcdef\r\n0\r\n\r\n", CHUNKS STARS },
	{ "what an extension and a trailer say is left out", CHUNKS "2;x=" SECRET "\r\nhi\r\n0\r\nX: " SECRET "\r\n\r\n", CHUNKS "hi" },
	{ "what is behind the last chunk is left out", CHUNKS "2\r\nhi\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n" SECRET, CHUNKS "hi" },
	{ "chunks that are cut stay cut", CHUNKS "5\r\nhe", CHUNKS "he<cut>" },
	{ "chunks that are cut behind half a secret: to mask it would tell that it is one", CHUNKS "7\r\nghp_012", CHUNKS "ghp_012<cut>" },
	{ "a length that is cut", OK "Content-Length: 50\r\n\r\n<" SECRET, OK "Content-Length: 50\r\n\r\n<" STARS },
	{ "what is behind the length is left out", OK "Content-Length: 2\r\n\r\nhi" SECRET, OK "Content-Length: 2\r\n\r\nhi" },
	{ "no head at all is refused", "hello " SECRET, NULL },
	{ "a head with LF alone is refused", "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n1\r\ng\r\n", NULL },
	{ "a header with LF alone is refused", OK "X: y\nTransfer-Encoding: chunked\r\n\r\n", NULL },
	{ "a folded header is refused", OK "Transfer-Encoding:\r\n chunked\r\n\r\n", NULL },
	{ "a blank before the colon is refused", OK "Transfer-Encoding : chunked\r\n\r\n", NULL },
	{ "two codings are refused", OK "Transfer-Encoding: gzip, chunked\r\n\r\n", NULL },
	{ "an unknown coding is refused", OK "Transfer-Encoding: xchunked\r\n\r\n", NULL },
	{ "two Transfer-Encodings are refused", OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", NULL },
	{ "chunks with a length are refused", OK "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", NULL },
	{ "two lengths are refused", OK "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", NULL },
	{ "a part is refused", "HTTP/1.1 206 Partial Content\r\nContent-Length: 3\r\n\r\nabc", NULL },
	{ "several parts are refused", OK "Content-Type: multipart/byteranges; boundary=x\r\nContent-Length: 3\r\n\r\nabc", NULL },
	{ "a coded body is refused", OK "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", NULL },
	{ "a charset that is unlike ASCII is refused", OK "Content-Type: text/html; charset=UTF-16\r\nContent-Length: 3\r\n\r\nabc", NULL },
	{ "a charset that is like ASCII", OK "Content-Type: text/html; charset=\"UTF-8\"\r\n\r\nabc", OK "Content-Type: text/html; charset=\"UTF-8\"\r\n\r\nabc" },
	{ "a size with LF alone is refused", CHUNKS "2\nhi\r\n0\r\n\r\n", NULL },
	{ "another protocol that no one asked for is refused", "HTTP/1.1 101 Switching Protocols\r\n\r\n", NULL },
	{ "a size that is none", CHUNKS "x\r\n", NULL },
	{ "no size", CHUNKS "\r\n", NULL },
	{ "a size beyond all bounds", CHUNKS "fffffffffffffffff\r\n", NULL },
	{ "more bytes than the size says", CHUNKS "2\r\nhi!\r\n0\r\n\r\n", NULL },
};
/* clang-format on */

/* Up to two letters of the beginning may have passed already (secret.h). */
static bool is_as_good(const char *want)
{
	size_t left = strlen(want), passed = 0;

	if (strlen(got.text) != left)
		return false;
	for (size_t i = 0; i < left; i++)
		passed += got.text[i] != want[i] && want[i] == '*';
	for (size_t i = 0; i < left; i++)
		if (got.text[i] != want[i] && want[i] != '*')
			return false;
	return passed <= 2 && !strstr(got.text, "0123");
}

static void test_rows(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool ok = true;

		for (size_t pace = 1; pace < 40; pace++) {
			pass(rows[i].reply, strlen(rows[i].reply), pace == 39 ? 1000 : pace);
			if (got.is_good)
				unchunk();
			ok &= rows[i].seen ? got.is_good && is_as_good(rows[i].seen) : !got.is_good;
		}
		if (!tap_ok(ok, "%s, at any pace", rows[i].name))
			printf("#   got: %s\n", got.text);
	}
}

static void test_early_answer(void)
{
	static const char early[] = "HTTP/1.1 103 Early Hints\r\nX: " SECRET "\r\n\r\n" CHUNKS "4\r\nghp_\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n";

	pass(early, sizeof early - 1, 7);
	tap_ok(got.is_good && got.is_done && !strstr(got.text, "0123456789abcdef") && strstr(got.text, "103 Early"), "behind an early answer the reply is still one of chunks");
}

static void test_large(void)
{
	static char head[HTTP_HEAD_MAX + 100], body[100000];

	memset(head, 'a', sizeof head);
	memcpy(head, OK, strlen(OK));
	pass(head, sizeof head, 4096);
	tap_ok(!got.is_good, "a head without an end is refused");
	pass_of(head, sizeof head, 4096, NULL, false, false);
	tap_ok(got.is_good && got.closes && got.len == sizeof head, "without a secret it passes, and nothing follows it");
	memset(body, 'b', sizeof body);
	memcpy(body, OK "\r\n", strlen(OK "\r\n"));
	memcpy(body + 70000, SECRET, strlen(SECRET));
	pass(body, sizeof body, sizeof body);
	tap_ok(got.is_good && got.len == sizeof body && !strncmp(got.text + 70000, STARS, strlen(STARS)), "a body that is larger than the room for it");
}

static void test_ends(void)
{
	static const char two[] = OK "Content-Length: 2\r\n\r\nhi" OK;

	pass_of(two, sizeof two - 1, 1000, NULL, false, false);
	tap_ok(got.is_good && got.is_done && !got.closes && got.len == sizeof two - sizeof OK, "a reply ends with its length");
	pass_of(CHUNKS, strlen(CHUNKS), 7, NULL, true, false);
	tap_ok(got.is_good && got.is_done && !got.closes, "a reply to HEAD ends with its head");
	pass_of("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 48, 7, NULL, false, false);
	tap_ok(got.is_good && got.is_done, "so does 304");
	pass_of(OK "Connection: Close\r\nContent-Length: 0\r\n\r\n", 57, 7, NULL, false, false);
	tap_ok(got.is_done && got.closes, "a server that closes takes no further request");
	pass_of(OK "\r\nhello", 24, 7, NULL, false, false);
	tap_ok(got.is_good && !got.is_done && got.closes, "without a length the reply ends with the connection");
	pass_of(CHUNKS "2\r\nhi\r\n0\r\nX: y\r\n\r\n", strlen(CHUNKS) + 20, 1, NULL, false, false);
	tap_ok(got.is_done && strstr(got.text, "0\r\n\r\n"), "chunks end behind the trailers");
}

/* The messages in frames of a server, and what is in them; "|" behind each. */
static const char *messages(const char *at, size_t len)
{
	static char text[1000];
	size_t      n = 0, size;

	for (; len >= 2; at += 2 + size, len -= 2 + size) {
		size = (uint8_t)at[1];
		memcpy(text + n, at + 2, size);
		n += size;
		if ((uint8_t)at[0] & 0x80)
			text[n++] = '|';
	}
	text[n] = 0;
	return text;
}

static void test_websocket(void)
{
	static const char head[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nX: " SECRET "\r\n\r\n";
	static const char frames[] = "\x81\x16<" SECRET ">" "\x01\x05<ghp_" "\x89\x14" SECRET "\x80\x11" "0123456789abcdef>" "\x82\x01!" "\x81\x00";
	static char       all[1000];
	bool              ok = true;
	size_t            len = sizeof head - 1 + sizeof frames - 1;

	memcpy(all, head, sizeof head - 1);
	memcpy(all + sizeof head - 1, frames, sizeof frames - 1);
	for (size_t pace = 1; pace < 60; pace++) {
		const char *body;

		pass_of(all, len, pace, &config, false, true);
		body = strstr(got.text, "\r\n\r\n") + 4;
		ok &= got.is_good && !memmem(got.text, got.len, "0123", 4) && strstr(messages(body, got.len - (size_t)(body - got.text)), "<" STARS ">|");
	}
	tap_ok(ok, "a secret in frames of a WebSocket, at any pace");
	tap_is(messages(strstr(got.text, "\r\n\r\n") + 4, got.len - (size_t)(strstr(got.text, "\r\n\r\n") + 4 - got.text)), "<" STARS ">|" STARS "|<" STARS ">|!|" "|", "messages and control frames stay");
	memcpy(all + sizeof head - 1, "\xc1\x01x", 3);
	pass_of(all, sizeof head + 2, 1000, &config, false, true);
	tap_ok(!got.is_good, "a frame of an extension, as of a compressed message, is refused");
}

int main(void)
{
	test_ends();
	test_websocket();
	test_rows();
	test_early_answer();
	test_large();
	return tap_done();
}
