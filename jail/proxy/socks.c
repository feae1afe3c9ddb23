#include "socks.h"

#include <arpa/inet.h>
#include <string.h>

enum { FOUR = 1, NAME = 3, SIX = 4 };
enum { REPLY_FAILURE = 1, REPLY_NOT_ALLOWED = 2, REPLY_UNREACHABLE = 4 };

enum socks_outcome socks_greeting_parse(const uint8_t *bytes, size_t have, size_t *len)
{
	if (have < 2)
		return SOCKS_MORE;
	if (bytes[0] != SOCKS_VERSION || bytes[1] == 0)
		return SOCKS_BAD;
	if (have < 2u + bytes[1])
		return SOCKS_MORE;
	*len = 2u + bytes[1];
	return memchr(bytes + 2, 0, bytes[1]) ? SOCKS_DONE : SOCKS_BAD;
}

/* Of the address that begins at bytes[4], with the length byte of a name; 0: unknown kind. */
static size_t socks_address_len(const uint8_t *bytes)
{
	switch (bytes[3]) {
	case FOUR:
		return 4;
	case SIX:
		return 16;
	case NAME:
		return 1u + bytes[4];
	default:
		return 0;
	}
}

static bool copy_host(const uint8_t *bytes, struct socks_request *r)
{
	if (r->kind == NAME) {
		r->host_len = bytes[4];
		memcpy(r->host, bytes + 5, r->host_len);
		return r->host_len > 0;
	}
	if (!inet_ntop(r->kind == FOUR ? AF_INET : AF_INET6, bytes + 4, r->host, sizeof r->host))
		return false;
	r->host_len = strlen(r->host);
	return true;
}

enum socks_outcome socks_request_parse(const uint8_t *bytes, size_t have, struct socks_request *ret)
{
	size_t host;

	if (have < 5)
		return SOCKS_MORE;
	host = socks_address_len(bytes);
	if (bytes[0] != SOCKS_VERSION || bytes[2] != 0 || host == 0)
		return SOCKS_BAD;
	if (have < 4 + host + 2)
		return SOCKS_MORE;
	*ret      = (struct socks_request){ .len = 4 + host + 2, .command = bytes[1], .kind = bytes[3] };
	ret->port = (uint16_t)(bytes[4 + host] << 8 | bytes[4 + host + 1]);
	return copy_host(bytes, ret) ? SOCKS_DONE : SOCKS_BAD;
}

static size_t print_socks_reply(uint8_t code, char text[SOCKS_REPLY_MAX])
{
	const char reply[SOCKS_REPLY_MAX] = { SOCKS_VERSION, (char)code, 0, FOUR };

	memcpy(text, reply, sizeof reply);
	return sizeof reply;
}

size_t socks_print_refusal(enum net_reason reason, char text[SOCKS_REPLY_MAX])
{
	switch (reason) {
	case NET_REASON_UNRESOLVED:
	case NET_REASON_UNREACHABLE:
		return print_socks_reply(REPLY_UNREACHABLE, text);
	case NET_REASON_NO_MEMORY:
	case NET_REASON_TOO_SLOW:
	case NET_REASON_BAD_REQUEST:
		return print_socks_reply(REPLY_FAILURE, text);
	default:
		return print_socks_reply(REPLY_NOT_ALLOWED, text);
	}
}

size_t socks_print_success(char text[SOCKS_REPLY_MAX])
{
	return print_socks_reply(0, text);
}
