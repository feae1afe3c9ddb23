#include "net_address.h"
#include "tap.h"

#include <arpa/inet.h>

static const struct {
	const char *text, *range; /* range NULL: public */
} rows[] = {
	{ "1.1.1.1", NULL },
	{ "8.8.8.8", NULL },
	{ "0.0.0.0", "this host" },
	{ "0.255.255.255", "this host" },
	{ "9.255.255.255", NULL },
	{ "10.0.0.0", "private" },
	{ "10.255.255.255", "private" },
	{ "11.0.0.0", NULL },
	{ "100.63.255.255", NULL },
	{ "100.64.0.0", "shared" },
	{ "100.100.100.200", "metadata" },
	{ "100.127.255.255", "shared" },
	{ "100.128.0.0", NULL },
	{ "127.0.0.1", "loopback" },
	{ "127.255.255.254", "loopback" },
	{ "168.63.129.16", "metadata" },
	{ "168.63.129.17", NULL },
	{ "169.254.169.254", "metadata" },
	{ "169.254.170.2", "link-local" },
	{ "172.15.255.255", NULL },
	{ "172.16.0.1", "private" },
	{ "172.31.255.255", "private" },
	{ "172.32.0.0", NULL },
	{ "192.0.0.192", "special" },
	{ "192.0.2.1", "documentation" },
	{ "192.88.99.1", "6to4" },
	{ "192.168.1.1", "private" },
	{ "192.169.0.0", NULL },
	{ "198.17.255.255", NULL },
	{ "198.18.0.1", "benchmarking" },
	{ "198.19.255.255", "benchmarking" },
	{ "198.20.0.0", NULL },
	{ "198.51.100.1", "documentation" },
	{ "203.0.113.1", "documentation" },
	{ "223.255.255.255", NULL },
	{ "224.0.0.1", "multicast" },
	{ "239.255.255.250", "multicast" },
	{ "240.0.0.1", "reserved" },
	{ "255.255.255.255", "broadcast" },

	{ "2606:4700::1111", NULL },
	{ "2a00:1450:4001::1", NULL },
	{ "::", "unspecified" },
	{ "::1", "loopback" },
	{ "::2", "IPv4-compatible" },
	{ "::127.0.0.1", "IPv4-compatible" },
	{ "::8.8.8.8", "IPv4-compatible" },
	{ "::ffff:8.8.8.8", NULL },
	{ "::ffff:127.0.0.1", "loopback" },
	{ "::ffff:10.1.2.3", "private" },
	{ "::ffff:a9fe:a9fe", "metadata" },
	{ "::ffff:0:8.8.8.8", "IPv4-translated" },
	{ "64:ff9b::8.8.8.8", NULL },
	{ "64:ff9b::192.168.0.1", "private" },
	{ "64:ff9b::a9fe:a9fe", "metadata" },
	{ "64:ff9b:1::8.8.8.8", "local NAT64" },
	{ "100::1", "discard" },
	{ "2001:0:808:808::f7f7:f7f7", NULL },
	{ "2001:0:808:808::80ff:fffe", "loopback" },
	{ "2001:0:808:808::f5ff:fffe", "private" },
	{ "2001:2::1", "special" },
	{ "2001:10::1", "special" },
	{ "2001:db8::1", "documentation" },
	{ "2001:200::1", NULL },
	{ "2002:808:808::1", NULL },
	{ "2002:7f00:1::1", "loopback" },
	{ "2002:c0a8:101::1", "private" },
	{ "3fff:1::1", "documentation" },
	{ "4000::1", "reserved" },
	{ "5f00::1", "special" },
	{ "fc00::1", "private" },
	{ "fd12:3456::1", "private" },
	{ "fd00:ec2::254", "metadata" },
	{ "fd20:ce::254", "metadata" },
	{ "fe00::1", "reserved" },
	{ "fe80::1", "link-local" },
	{ "febf::1", "link-local" },
	{ "fec0::1", "site-local" },
	{ "ff02::1", "multicast" },
	{ "ff0e::1", "multicast" },
};

static const char *range_of(const char *text)
{
	struct sockaddr_in  v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };

	if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
		return net_address_special_range((struct sockaddr *)&v4);
	return inet_pton(AF_INET6, text, &v6.sin6_addr) == 1 ? net_address_special_range((struct sockaddr *)&v6) :
		"no address";
}

static const struct {
	const char *text, *inner; /* inner NULL: none */
} inside[] = {
	{ "::ffff:192.0.2.1", "192.0.2.1" },
	{ "::ffff:0:192.0.2.1", "192.0.2.1" },
	{ "::192.0.2.1", "192.0.2.1" },
	{ "64:ff9b::c000:201", "192.0.2.1" },
	{ "2002:c000:201::1", "192.0.2.1" },
	{ "2001:0:1:2:3:4:3fff:fdfe", "192.0.2.1" },
	{ "::1", NULL },
	{ "::", NULL },
	{ "64:ff9b:1::c000:201", NULL },
	{ "2606:2800:220:1::34", NULL },
	{ "4000::1", NULL },
};

static void test_inside(const char *text, const char *want)
{
	struct sockaddr_in6 six                   = { .sin6_family = AF_INET6, .sin6_port = 80 };
	struct sockaddr_in  four                  = { 0 };
	char                got[INET_ADDRSTRLEN] = "nothing";

	inet_pton(AF_INET6, text, &six.sin6_addr);
	if (net_address_embedded_v4((struct sockaddr *)&six, &four))
		inet_ntop(AF_INET, &four.sin_addr, got, sizeof got);
	tap_ok(strcmp(got, want ? want : "nothing") == 0 && four.sin_port == (want ? 80 : 0), "%s has %s inside", text, want ? want : "nothing");
}

int main(void)
{
	struct sockaddr other = { .sa_family = AF_UNIX };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *got = range_of(rows[i].text), *want = rows[i].range;

		if (!tap_ok(want ? got && strncmp(got, want, strlen(want)) == 0 : got == NULL, "%s is %s", rows[i].text, want ? want : "public"))
			printf("#   got: %s\n", got ? got : "public");
	}
	for (size_t i = 0; i < ARRAY_LEN(inside); i++)
		test_inside(inside[i].text, inside[i].inner);
	tap_ok(net_address_special_range(&other) != NULL, "an address of another family is not public");
	return tap_done();
}
