#include "net_rule.h"
#include "tap.h"

#define L63 "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg"
#define L61 "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffg"

static const struct {
	const char *name, *text, *host; /* host NULL: refused */
	bool        is_address;
} rows[] = {
	{ "a name is itself", "api.github.com", "api.github.com", false },
	{ "upper case becomes lower case", "API.GitHub.COM", "api.github.com", false },
	{ "one dot at the end is cut off", "github.com.", "github.com", false },
	{ "two dots at the end are refused", "github.com..", NULL, false },
	{ "a dot alone is refused", ".", NULL, false },
	{ "a dot at the beginning is refused", ".github.com", NULL, false },
	{ "an empty label is refused", "github..com", NULL, false },
	{ "an empty name is refused", "", NULL, false },
	{ "a single label is a name", "localhost", "localhost", false },
	{ "an underscore is allowed, as names of services have it", "_acme.example.org", "_acme.example.org", false },
	{ "an IDN in ASCII is a name", "xn--bcher-kva.example", "xn--bcher-kva.example", false },
	{ "an IDN in UTF-8 is refused", "b\xc3\xbc" "cher.example", NULL, false },
	{ "a Cyrillic letter that looks like a Latin one is refused", "g\xd1\x96thub.com", NULL, false },
	{ "a full-width dot is refused", "github\xef\xbc\x8e" "com", NULL, false },
	{ "a blank is refused", "github.com ", NULL, false },
	{ "a line end is refused", "github.com\r\n", NULL, false },
	{ "a NUL is seen in tests of lengths; a percent sign is refused", "github%2ecom", NULL, false },
	{ "user and host are refused", "github.com@evil.example", NULL, false },
	{ "a port is refused", "github.com:443", NULL, false },
	{ "a star is refused", "*.github.com", NULL, false },
	{ "a label of 63 bytes is allowed", L63 ".org", L63 ".org", false },
	{ "a label of 64 bytes is refused", L63 "a.org", NULL, false },
	{ "a name of 253 bytes is allowed", L63 "." L63 "." L63 "." L61, L63 "." L63 "." L63 "." L61, false },
	{ "and with a dot behind it", L63 "." L63 "." L63 "." L61 ".", L63 "." L63 "." L63 "." L61, false },
	{ "a name of 254 bytes is refused", L63 "." L63 "." L63 "." L61 "a", NULL, false },
	{ "digits before letters make no address", "4chan.org", "4chan.org", false },
	{ "a first label of digits makes no address", "127.example.org", "127.example.org", false },

	{ "a dotted quad is an address", "127.0.0.1", "127.0.0.1", true },
	{ "a dotted quad with a dot behind it is refused", "127.0.0.1.", NULL, false },
	{ "a decimal number is refused", "2130706433", NULL, false },
	{ "a hex number is refused", "0x7f000001", NULL, false },
	{ "a hex number in upper case is refused", "0X7F000001", NULL, false },
	{ "an octal number is refused", "017700000001", NULL, false },
	{ "two parts are refused", "127.1", NULL, false },
	{ "three parts are refused", "127.0.1", NULL, false },
	{ "hex parts are refused", "0x7f.0.0.1", NULL, false },
	{ "a hex last part is refused", "127.0.0.0x1", NULL, false },
	{ "a hex prefix without digits is refused", "127.0.0.0x", NULL, false },
	{ "octal parts are refused", "0177.0.0.01", NULL, false },
	{ "a part with zeros before it is refused", "127.0.0.001", NULL, false },
	{ "a part above 255 is refused", "127.0.0.256", NULL, false },
	{ "five parts are refused", "1.2.3.4.5", NULL, false },
	{ "letters before a last part of digits are refused", "example.1", NULL, false },
	{ "zero is refused", "0", NULL, false },

	{ "IPv6 is an address", "2001:db8::1", "2001:db8::1", true },
	{ "IPv6 has one spelling", "2001:0DB8:0:0:0:0:0:1", "2001:db8::1", true },
	{ "IPv6 loopback", "::1", "::1", true },
	{ "the long spelling of it", "0:0:0:0:0:0:0:1", "::1", true },
	{ "IPv6 in brackets is refused: they are not the address's", "[::1]", NULL, false },
	{ "a zone is refused", "fe80::1%eth0", NULL, false },
	{ "an IPv4 tail is refused", "::ffff:127.0.0.1", NULL, false },
	{ "a mapped address in hex is refused as well", "::ffff:7f00:1", NULL, false },
	{ "a compatible address is refused as well", "::7f00:1", NULL, false },
	{ "IPv6 with a dot behind it is refused", "::1.", NULL, false },
	{ "colons alone are refused", ":::", NULL, false },
};

int main(void)
{
	char host[NET_HOST_MAX];
	bool is_address;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool ok = net_host_canonicalize(rows[i].text, strlen(rows[i].text), host, &is_address);

		if (!tap_ok(ok == (rows[i].host != NULL) && (!ok || (!strcmp(host, rows[i].host) && is_address == rows[i].is_address)), "%s", rows[i].name))
			printf("#   %s\n", ok ? host : "refused");
	}
	tap_ok(!net_host_canonicalize("good\0evil", 9, host, &is_address), "a NUL inside is refused");
	tap_ok(net_host_canonicalize("goodevil", 4, host, &is_address) && !strcmp(host, "good"),
	       "only len bytes are read");
	memset(host, 'x', sizeof host);
	tap_ok(net_host_canonicalize("a", 1, host, &is_address) &&
	       !memcmp(host, (char[NET_HOST_MAX]){ "a" }, NET_HOST_MAX), "zeros are behind a name");
	memset(host, 'x', sizeof host);
	tap_ok(net_host_canonicalize("::1", 3, host, &is_address) &&
	       !memcmp(host, (char[NET_HOST_MAX]){ "::1" }, NET_HOST_MAX), "zeros are behind an address");
	return tap_done();
}
