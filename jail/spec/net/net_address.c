#include "net_address.h"

#include <string.h>

/* clang-format off */
static const struct {
	uint8_t     first[4];
	unsigned    bits;
	const char *name;
} v4[] = { /* the first row that fits counts */
	{ {   0,   0,   0,   0 },  8, "this host (0.0.0.0/8)" },      /* connect(2) to 0.0.0.0 reaches the host itself */
	{ {  10,   0,   0,   0 },  8, "private" },                    /* RFC 1918 */
	{ { 100, 100, 100, 200 }, 32, "metadata" },                   /* Alibaba Cloud */
	{ { 100,  64,   0,   0 }, 10, "shared (CGNAT)" },             /* RFC 6598 */
	{ { 127,   0,   0,   0 },  8, "loopback" },
	{ { 168,  63, 129,  16 }, 32, "metadata" },                   /* Azure's wire server */
	{ { 169, 254, 169, 254 }, 32, "metadata" },
	{ { 169, 254,   0,   0 }, 16, "link-local" },                 /* RFC 3927; AWS has 169.254.170.2 and 169.254.169.253 here, too */
	{ { 172,  16,   0,   0 }, 12, "private" },
	{ { 192,   0,   0,   0 }, 24, "special (192.0.0.0/24)" },     /* RFC 6890; Oracle's metadata service has 192.0.0.192 */
	{ { 192,   0,   2,   0 }, 24, "documentation" },              /* RFC 5737 */
	{ { 192,  31, 196,   0 }, 24, "special (AS112)" },            /* RFC 7535 */
	{ { 192,  52, 193,   0 }, 24, "special (AMT)" },              /* RFC 7450 */
	{ { 192,  88,  99,   0 }, 24, "6to4 relay" },                 /* RFC 7526 */
	{ { 192, 168,   0,   0 }, 16, "private" },
	{ { 192, 175,  48,   0 }, 24, "special (AS112)" },            /* RFC 7534 */
	{ { 198,  18,   0,   0 }, 15, "benchmarking" },               /* RFC 2544; brig's addresses that stand for names (NET_ROUTE) */
	{ { 198,  51, 100,   0 }, 24, "documentation" },
	{ { 203,   0, 113,   0 }, 24, "documentation" },
	{ { 224,   0,   0,   0 },  4, "multicast" },
	{ { 255, 255, 255, 255 }, 32, "broadcast" },
	{ { 240,   0,   0,   0 },  4, "reserved" },                   /* RFC 1112 */
};

static const struct {
	uint8_t     first[16];
	unsigned    bits;
	const char *name;    /* NULL: public, or that of the IPv4 address inside */
	unsigned    v4_at;   /* byte offset of the IPv4 address inside; 0: none */
	uint8_t     v4_flip; /* XORed with each byte of it: Teredo stores it inverted */
} v6[] = { /* the first row that fits counts */
	{ { 0 },                                                 128, "unspecified",           0, 0 },
	{ { [15] = 1 },                                          128, "loopback",              0, 0 },
	{ { [10] = 0xff, 0xff },                                  96, NULL,                   12, 0 },    /* mapped, RFC 4291 */
	{ { [8] = 0xff, 0xff },                                   96, "IPv4-translated",      12, 0 },    /* RFC 2765 */
	{ { 0 },                                                  96, "IPv4-compatible",      12, 0 },    /* RFC 4291, deprecated and unused */
	{ { 0x00, 0x64, 0xff, 0x9b },                             96, NULL,                   12, 0 },    /* NAT64, RFC 6052 */
	{ { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 },                 48, "local NAT64",           0, 0 },    /* RFC 8215 */
	{ { 0x01, 0x00 },                                         64, "discard",               0, 0 },    /* RFC 6666 */
	{ { 0x01, 0x00, [7] = 1 },                                64, "special (100:0:0:1::/64)", 0, 0 }, /* RFC 9780 */
	{ { 0x20, 0x01 },                                         32, NULL,                   12, 0xff }, /* Teredo, RFC 4380 */
	{ { 0x20, 0x01, 0x00, 0x20 },                             28, "special (ORCHIDv2)",    0, 0 },    /* RFC 7343 */
	{ { 0x20, 0x01, 0x00, 0x10 },                             28, "special (ORCHID)",      0, 0 },
	{ { 0x20, 0x01 },                                         23, "special (2001::/23)",   0, 0 },    /* RFC 2928 */
	{ { 0x20, 0x01, 0x0d, 0xb8 },                             32, "documentation",         0, 0 },    /* RFC 3849 */
	{ { 0x20, 0x02 },                                         16, NULL,                    2, 0 },    /* 6to4, RFC 3056 */
	{ { 0x3f, 0xff },                                         20, "documentation",         0, 0 },    /* RFC 9637 */
	{ { 0x5f, 0x00 },                                         16, "special (SRv6)",        0, 0 },    /* RFC 9602 */
	{ { 0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, 0x54 },         128, "metadata",              0, 0 },    /* AWS */
	{ { 0xfd, 0x20, 0x00, 0xce, [14] = 0x02, 0x54 },         128, "metadata",              0, 0 },    /* Google Cloud */
	{ { 0xfc },                                                7, "private (unique local)", 0, 0 },   /* RFC 4193 */
	{ { 0xfe, 0x80 },                                         10, "link-local",            0, 0 },
	{ { 0xfe, 0xc0 },                                         10, "site-local",            0, 0 },    /* RFC 3879 */
	{ { 0xff },                                                8, "multicast",             0, 0 },
	{ { 0x20 },                                                3, NULL,                    0, 0 },    /* global unicast; all others are reserved */
};
/* clang-format on */

static bool is_in_prefix(const uint8_t *address, const uint8_t *first, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	return memcmp(address, first, whole) == 0 && (rest == 0 || ((address[whole] ^ first[whole]) >> (8 - rest)) == 0);
}

static const char *range_name_of_v4(const uint8_t address[4])
{
	for (size_t i = 0; i < ARRAY_LEN(v4); i++)
		if (is_in_prefix(address, v4[i].first, v4[i].bits))
			return v4[i].name;
	return NULL;
}

/* ARRAY_LEN(v6): none. */
static size_t find_v6_range(const uint8_t address[16])
{
	size_t i = 0;

	while (i < ARRAY_LEN(v6) && !is_in_prefix(address, v6[i].first, v6[i].bits))
		i++;
	return i;
}

bool net_address_embedded_v4(const struct sockaddr *address, struct sockaddr_in *ret)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)address;
	size_t                     row = address->sa_family == AF_INET6 ? find_v6_range(six->sin6_addr.s6_addr) :
		ARRAY_LEN(v6);
	uint8_t                    inner[4];

	if (row == ARRAY_LEN(v6) || !v6[row].v4_at)
		return false;
	for (unsigned i = 0; i < sizeof inner; i++)
		inner[i] = six->sin6_addr.s6_addr[v6[row].v4_at + i] ^ v6[row].v4_flip;
	*ret = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = six->sin6_port };
	memcpy(&ret->sin_addr, inner, sizeof inner);
	return true;
}

static const char *range_name_of_v6(const struct sockaddr *address)
{
	size_t             row = find_v6_range(((const struct sockaddr_in6 *)(const void *)address)->sin6_addr.s6_addr);
	struct sockaddr_in inner;

	if (row == ARRAY_LEN(v6))
		return "reserved";
	if (v6[row].name || !net_address_embedded_v4(address, &inner))
		return v6[row].name;
	return range_name_of_v4((const uint8_t *)&inner.sin_addr);
}

const char *net_address_special_range(const struct sockaddr *address)
{
	switch (address->sa_family) {
	case AF_INET:
		return range_name_of_v4((const uint8_t *)&((const struct sockaddr_in *)(const void *)address)->sin_addr);
	case AF_INET6:
		return range_name_of_v6(address);
	default:
		return "of another family than IPv4 and IPv6";
	}
}
