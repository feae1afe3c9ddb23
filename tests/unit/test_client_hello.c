#include "client_hello.h"
#include "tap.h"

/* --- a ClientHello, part by part --- */

struct hello {
	uint8_t bytes[40000];
	size_t  len;
};

static void put(struct hello *h, const void *bytes, size_t len)
{
	memcpy(h->bytes + h->len, bytes, len);
	h->len += len;
}

static void put_number(struct hello *h, uint32_t x, unsigned n)
{
	while (n-- > 0)
		h->bytes[h->len++] = (uint8_t)(x >> 8 * n);
}

static void put_extension(struct hello *h, unsigned type, const void *bytes, size_t len)
{
	put_number(h, type, 2);
	put_number(h, (uint32_t)len, 2);
	put(h, bytes, len);
}

static void put_sni(struct hello *h, const char *name)
{
	size_t n = strlen(name);

	put_number(h, 0, 2);
	put_number(h, (uint32_t)n + 5, 2);
	put_number(h, (uint32_t)n + 3, 2);
	put_number(h, 0, 1);
	put_number(h, (uint32_t)n, 2);
	put(h, name, n);
}

static struct hello message(const struct hello *extensions, bool with_extensions)
{
	static struct hello h;
	uint32_t            n = (uint32_t)extensions->len;

	h.len = 0;
	put_number(&h, 1, 1);
	put_number(&h, 2 + 32 + 1 + 4 + 2 + (with_extensions ? 2 + n : 0), 3);
	put_number(&h, 0x0303, 2);
	h.len += 32;
	put_number(&h, 0, 1);
	put_number(&h, 2, 2);
	put_number(&h, 0x1301, 2);
	put_number(&h, 0x0100, 2);
	if (with_extensions) {
		put_number(&h, n, 2);
		put(&h, extensions->bytes, n);
	}
	return h;
}

/* In records of at most `at_most` bytes each. */
static struct hello records(const struct hello *m, size_t at_most)
{
	static struct hello h;

	h.len = 0;
	for (size_t i = 0; i < m->len; i += at_most) {
		size_t n = m->len - i < at_most ? m->len - i : at_most;

		put_number(&h, 0x160301, 3);
		put_number(&h, (uint32_t)n, 2);
		put(&h, m->bytes + i, n);
	}
	return h;
}

static struct hello with_sni(const char *name)
{
	struct hello e = { .len = 0 }, m;

	put_sni(&e, name);
	m = message(&e, true);
	return records(&m, 16384);
}

/* --- */

static struct client_hello found;

static enum hello_outcome parse(const struct hello *h)
{
	memset(&found, 0, sizeof found);
	return client_hello_parse(h->bytes, h->len, &found);
}

static void bad(const struct hello *extensions, const char *name)
{
	struct hello m = message(extensions, true), h = records(&m, 16384);

	tap_ok(parse(&h) == HELLO_BAD, "%s", name);
}

static bool needs_all_of(const struct hello *h)
{
	for (size_t i = 0; i < h->len; i++)
		if (client_hello_parse(h->bytes, i, &found) != HELLO_MORE)
			return false;
	return client_hello_parse(h->bytes, h->len, &found) == HELLO_DONE;
}

static void test_names(void)
{
	static const struct {
		const char *name, *sni, *found; /* found NULL: refused */
	} rows[] = {
		{ "a server name", "api.example.org", "api.example.org" },
		{ "a server name in upper case", "API.example.org", "api.example.org" },
		{ "a server name with a dot at its end", "api.example.org.", "api.example.org" },
		{ "an empty server name is bad", "", NULL },
		{ "a server name with a blank is bad", "api.example.org ", NULL },
		{ "an IPv4 address as server name is bad", "1.2.3.4", NULL },
		{ "a decimal address as server name is bad", "2130706433", NULL },
		{ "an IPv6 address as server name is bad", "::1", NULL },
		{ "UTF-8 in a server name is bad", "b\xc3\xbc" "cher.example", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct hello h = with_sni(rows[i].sni);

		tap_ok(rows[i].found ? parse(&h) == HELLO_DONE && found.has_sni && !strcmp(found.sni, rows[i].found) : parse(&h) == HELLO_BAD, "%s", rows[i].name);
	}
}

static void test_extensions(void)
{
	struct hello e = { .len = 0 }, m, h;

	m = message(&e, false);
	h = records(&m, 16384);
	tap_ok(parse(&h) == HELLO_DONE && !found.has_sni && !found.has_alpn && found.offers_http1, "a client without extensions names no server");
	put_extension(&e, 16, "\0\x0e\x02h2\x08http/1.1\x01x", 16);
	put_extension(&e, 0xfe0d, "x", 1);
	m = message(&e, true);
	h = records(&m, 16384);
	tap_ok(parse(&h) == HELLO_DONE && found.has_alpn && found.offers_http1 && found.has_ech && !found.has_sni, "ALPN and ECH are seen");
	e.len = 0;
	put_extension(&e, 16, "\0\x03\x02h2", 5);
	m = message(&e, true);
	h = records(&m, 16384);
	tap_ok(parse(&h) == HELLO_DONE && found.has_alpn && !found.offers_http1, "a client that wants HTTP/2 alone is seen");
}

static void test_bad_extensions(void)
{
	struct hello e = { .len = 0 };

	put_sni(&e, "a.example");
	put_sni(&e, "b.example");
	bad(&e, "two server name extensions are bad");
	e.len = 0;
	put_extension(&e, 0, "\0\x0c\0\0\x03" "a.b" "\0\0\x03" "c.d", 14);
	bad(&e, "two names in one extension are bad");
	e.len = 0;
	put_extension(&e, 0, "\0\x06\x01\0\x03" "a.b", 8);
	bad(&e, "a name of another kind is bad");
	e.len = 0;
	put_extension(&e, 0, "\0\x06\0\0\x03" "a.bx", 9);
	bad(&e, "bytes behind the names are bad");
	e.len = 0;
	put_extension(&e, 0, "", 0);
	bad(&e, "an empty extension is bad");
	e.len = 0;
	put_extension(&e, 0, "\0\x06\0\0\x04" "a.b", 8);
	bad(&e, "a name longer than its list is bad");
	e.len = 0;
	put_extension(&e, 43, "x", 1);
	put_extension(&e, 43, "x", 1);
	bad(&e, "any extension twice is bad");
	e.len = 0;
	put_number(&e, 43, 2);
	put_number(&e, 5, 2);
	bad(&e, "an extension longer than all of them is bad");
	e.len = 0;
	for (unsigned i = 0; i < 129; i++)
		put_extension(&e, 1000 + i, "", 0);
	bad(&e, "too many extensions are bad");
}

static void test_records(void)
{
	struct hello e = { .len = 0 }, m, h;

	put_sni(&e, "api.example.org");
	m = message(&e, true);
	h = records(&m, 16384);
	tap_ok(needs_all_of(&h), "every byte of a record is waited for");
	h = records(&m, 1);
	tap_ok(needs_all_of(&h) && !strcmp(found.sni, "api.example.org"), "a message may be spread over records of one byte");
	put(&h, "\x14\x03\x03\0\x01\x01", 6);
	tap_ok(parse(&h) == HELLO_DONE, "records of another kind may follow");
	h = records(&m, 16384);
	h.bytes[4]++;
	put(&h, "x", 1);
	tap_ok(parse(&h) == HELLO_BAD, "bytes of the handshake behind the message are bad");
	h.len--;
	tap_ok(parse(&h) != HELLO_DONE, "also when they are not there yet");
	h = records(&m, 16384);
	h.bytes[5] = 2;
	tap_ok(parse(&h) == HELLO_BAD, "another message of the handshake is bad");
	h = records(&m, 16384);
	h.bytes[1] = 2;
	tap_ok(parse(&h) == HELLO_BAD, "SSL 2 in a record is bad");
	h = records(&m, 20);
	h.bytes[25] = 0x17;
	tap_ok(parse(&h) == HELLO_BAD, "a record of another kind in between is bad");
	put_number(&e, 0, 4);
	h = (struct hello){ .len = 0 };
	put(&h, "\x16\x03\x01\0\0", 5);
	tap_ok(parse(&h) == HELLO_BAD, "an empty record is bad");
	h = (struct hello){ .len = 0 };
	put(&h, "\x16\x03\x01\0\x04\x01\0\x80\0", 9);
	tap_ok(parse(&h) == HELLO_BAD, "a message that will be too long is bad at once");
	h = (struct hello){ .len = 0 };
	put(&h, "\x16\x03\x01\xff\xff\x01", 6);
	tap_ok(parse(&h) == HELLO_BAD, "a record that is too long is bad at once");
}

static void test_other_protocols(void)
{
	tap_ok(client_hello_parse((const uint8_t *)"GET / HTTP/1.1\r\n", 16, &found) == HELLO_NOT_TLS, "HTTP is not TLS");
	tap_ok(client_hello_parse((const uint8_t *)"\x80\x2e\x01\x03\x01", 5, &found) == HELLO_NOT_TLS, "an SSL 2 hello is not TLS");
	tap_ok(client_hello_parse((const uint8_t *)"", 0, &found) == HELLO_MORE, "nothing yet is waited for");
}

int main(void)
{
	test_names();
	test_extensions();
	test_bad_extensions();
	test_records();
	test_other_protocols();
	return tap_done();
}
