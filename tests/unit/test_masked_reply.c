#include "masked_reply.h"
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
	bool   is_good, is_done;
} got;

static void pass(const char *bytes, size_t len, size_t pace)
{
	static char         out[REPLY_ROOM + 1000];
	static struct reply r;
	size_t              from = 0, have = 0, taken = 1, made = 1;

	got.len     = 0;
	got.is_good = true;
	reply_begin(&r, &config, "api.example.org", 443);
	while (got.is_good && !r.is_done && (have < len || taken || made)) {
		have        = have + pace < len ? have + pace : len;
		got.is_good = reply_step(&r, (struct span){ bytes + from, have - from }, have == len, out, sizeof out, &taken, &made);
		from += taken;
		memcpy(got.text + got.len, out, made);
		got.len += made;
	}
	got.text[got.len] = 0;
	got.is_done       = r.is_done;
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
	{ "a reply to HEAD, which has no chunks", CHUNKS, CHUNKS "<cut>" },
	{ "no head at all", "hello " SECRET, "hello " STARS },
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
	static char head[REPLY_HEAD_MAX + 100], body[100000];

	memset(head, 'a', sizeof head);
	memcpy(head, OK, strlen(OK));
	pass(head, sizeof head, 4096);
	tap_ok(!got.is_good, "a head without an end is refused");
	memset(body, 'b', sizeof body);
	memcpy(body, OK "\r\n", strlen(OK "\r\n"));
	memcpy(body + 70000, SECRET, strlen(SECRET));
	pass(body, sizeof body, sizeof body);
	tap_ok(got.is_good && got.len == sizeof body && !strncmp(got.text + 70000, STARS, strlen(STARS)), "a body that is larger than the room for it");
}

int main(void)
{
	test_rows();
	test_early_answer();
	test_large();
	return tap_done();
}
