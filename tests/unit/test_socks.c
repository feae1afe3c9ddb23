#include "socks.h"
#include "tap.h"

static enum socks_outcome greet(const char *bytes, size_t len, size_t *taken)
{
	return socks_greeting_parse((const uint8_t *)bytes, len, taken);
}

static enum socks_outcome ask(const char *bytes, size_t len, struct socks_request *r)
{
	return socks_request_parse((const uint8_t *)bytes, len, r);
}
#define BYTES(text) (text), sizeof(text) - 1

/* Every beginning of it is not enough, and with more behind it, it is the same one. */
static bool is_whole_at(const char *bytes, size_t len)
{
	struct socks_request r;
	char                 more[600];

	for (size_t n = 0; n < len; n++)
		if (ask(bytes, n, &r) != SOCKS_MORE)
			return false;
	memcpy(more, bytes, len);
	memset(more + len, 'x', 5);
	return ask(bytes, len, &r) == SOCKS_DONE && r.len == len && ask(more, len + 5, &r) == SOCKS_DONE && r.len == len;
}

static void greetings(void)
{
	size_t len = 0;

	tap_ok(greet(BYTES("\5\1\0"), &len) == SOCKS_DONE && len == 3, "a greeting without a password is taken");
	tap_ok(greet(BYTES("\5\3\2\1\0more"), &len) == SOCKS_DONE && len == 5,
	       "it may be one way of several, and what follows is left");
	tap_ok(greet("", 0, &len) == SOCKS_MORE && greet(BYTES("\5"), &len) == SOCKS_MORE &&
		       greet(BYTES("\5\2\0"), &len) == SOCKS_MORE,
	       "a greeting that is not whole is waited for");
	tap_ok(greet(BYTES("\5\2\1\2"), &len) == SOCKS_BAD, "one with passwords only is refused");
	tap_ok(greet(BYTES("\5\0"), &len) == SOCKS_BAD, "one without any way is refused");
	tap_ok(greet(BYTES("\4\1\0"), &len) == SOCKS_BAD, "version 4 is refused");
}

static void requests(void)
{
	struct socks_request r;

	tap_ok(ask(BYTES("\5\1\0\3\14shop.example\1\273"), &r) == SOCKS_DONE && r.command == 1 && r.port == 443 &&
		       r.host_len == 12 && memcmp(r.host, "shop.example", 12) == 0,
	       "a name is taken as it was sent");
	tap_ok(ask(BYTES("\5\1\0\1\135\270\330\42\0\120"), &r) == SOCKS_DONE && r.port == 80 &&
		       strcmp(r.host, "93.184.216.34") == 0,
	       "an address of IPv4 becomes text");
	tap_ok(ask(BYTES("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\120"), &r) == SOCKS_DONE && strcmp(r.host, "::1") == 0,
	       "an address of IPv6 becomes text");
	tap_ok(ask(BYTES("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\377\377\12\1\2\3\0\120"), &r) == SOCKS_DONE &&
		       strcmp(r.host, "::ffff:10.1.2.3") == 0,
	       "a mapped address stays one of IPv6, for the rules to refuse");
	tap_ok(ask(BYTES("\5\1\0\3\5a\0b.c\0\120"), &r) == SOCKS_DONE && r.host_len == 5 && r.host[1] == 0,
	       "a zero in a name is left in it, for the rules to refuse");
	tap_ok(ask(BYTES("\5\1\0\3\0\0\120"), &r) == SOCKS_BAD, "a name without a byte is refused");
	tap_ok(ask(BYTES("\5\1\1\1\1\2\3\4\0\120"), &r) == SOCKS_BAD && ask(BYTES("\5\1\0\2\1\2\3\4\0\120"), &r) == SOCKS_BAD &&
		       ask(BYTES("\4\1\0\1\1\2\3\4\0\120"), &r) == SOCKS_BAD,
	       "another version, kind of address or reserved byte is refused");
	tap_ok(ask(BYTES("\5\2\0\1\1\2\3\4\0\120"), &r) == SOCKS_DONE && r.command == 2, "BIND is told as what it is");
}

static void lengths(void)
{
	char name[600] = "\5\1\0\3\377";

	memset(name + 5, 'a', 255);
	tap_ok(is_whole_at(name, 5 + 255 + 2) && 5 + 255 + 2 < SOCKS_MAX,
	       "the longest name has room, and each byte of it is waited for");
	tap_ok(is_whole_at("\5\1\0\1\1\2\3\4\0\120", 10) && is_whole_at("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\120", 22),
	       "so is each byte of an address");
}

static void replies(void)
{
	char reply[SOCKS_REPLY_MAX];

	tap_ok(socks_print_success(reply) == 10 && memcmp(reply, "\5\0\0\1\0\0\0\0\0\0", 10) == 0,
	       "success says no address of the host");
	tap_ok(socks_print_refusal(NET_REASON_NOT_ALLOWED, reply) == 10 && reply[1] == 2 &&
		       socks_print_refusal(NET_REASON_DENIED, reply) == 10 && reply[1] == 2,
	       "what is not allowed is told as such");
	tap_ok(socks_print_refusal(NET_REASON_UNREACHABLE, reply) == 10 && reply[1] == 4 &&
		       socks_print_refusal(NET_REASON_UNRESOLVED, reply) == 10 && reply[1] == 4,
	       "a host that does not answer is unreachable");
	tap_ok(socks_print_refusal(NET_REASON_NO_MEMORY, reply) == 10 && reply[1] == 1,
	       "the proxy's own trouble is a general failure");
}

int main(void)
{
	greetings();
	requests();
	lengths();
	replies();
	return tap_done();
}
