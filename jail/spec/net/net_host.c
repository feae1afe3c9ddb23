#define _GNU_SOURCE
#include "net_rule.h"
#include "text.h"

#include <arpa/inet.h>
#include <string.h>

enum { LABEL_MAX = 63 };

/* Lower case, labels of allowed length and bytes, no trailing dot. */
static bool is_dns_name(const char *host)
{
	size_t label = 0;

	for (; *host; host++) {
		bool is_of_label = (*host >= '0' && *host <= '9') || (*host >= 'a' && *host <= 'z') || *host == '-' ||
			*host == '_';

		if (*host != '.' && (!is_of_label || ++label > LABEL_MAX))
			return false;
		if (*host == '.' && label == 0)
			return false;
		if (*host == '.')
			label = 0;
	}
	return label > 0;
}

/* A last label like "7", "010", "0x7f" or "0x": inet_aton(3), and perhaps a resolver, takes a name that ends so for an address. */
static bool ends_in_number(const char *host)
{
	const char *dot = strrchr(host, '.'), *last = dot ? dot + 1 : host;
	bool        hex = begins_with(last, "0x");

	last += hex ? 2 : 0;
	return last[strspn(last, hex ? "0123456789abcdef" : "0123456789")] == 0;
}

/* Compared with the text of the result: inet_pton() may accept other spellings, and only one may pass. */
static bool is_dotted_quad(const char *host)
{
	struct in_addr address;
	char           text[INET_ADDRSTRLEN];

	return inet_pton(AF_INET, host, &address) == 1 && inet_ntop(AF_INET, &address, text, sizeof text) && strcmp(text, host) == 0;
}

/* Refuses mapped and compatible addresses, which inet_ntop() prints with dots: the IPv4 address inside has its own spelling. */
static bool canonicalize_ipv6(const char *text, char ret[NET_HOST_MAX])
{
	struct in6_addr address;
	char            canonical[INET6_ADDRSTRLEN];

	if (strchr(text, '.') || inet_pton(AF_INET6, text, &address) != 1)
		return false;
	if (!inet_ntop(AF_INET6, &address, canonical, sizeof canonical) || strchr(canonical, '.'))
		return false;
	memset(ret, 0, NET_HOST_MAX);
	memcpy(ret, canonical, strlen(canonical));
	return true;
}

bool net_host_canonicalize(const char *text, size_t len, char ret[NET_HOST_MAX], bool *is_address)
{
	char host[NET_HOST_MAX + 1] = { 0 };
	bool dotted;

	if (len == 0 || len > NET_HOST_MAX || memchr(text, 0, len))
		return false;
	for (size_t i = 0; i < len; i++)
		host[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] + ('a' - 'A')) : text[i];
	if (strchr(host, ':')) {
		*is_address = true;
		return canonicalize_ipv6(host, ret);
	}
	dotted = host[len - 1] == '.';
	host[len - dotted] = 0;
	if (len - dotted > NET_HOST_MAX - 1 || !is_dns_name(host))
		return false;
	*is_address = ends_in_number(host);
	if (*is_address && (dotted || !is_dotted_quad(host)))
		return false;
	memcpy(ret, host, NET_HOST_MAX); /* with the zeros that follow */
	return true;
}
