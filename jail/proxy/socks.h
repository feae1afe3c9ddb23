/*
 * socks.h - SOCKS version 5 (RFC 1928): CONNECT, without a password
 *
 * Pure: bytes that a program sent, and what to answer.
 */
#pragma once
#include "net_report.h"

enum { SOCKS_VERSION = 5, SOCKS_MAX = 600, SOCKS_REPLY_MAX = 10 };

enum socks_outcome { SOCKS_MORE, SOCKS_DONE, SOCKS_BAD };

/* The offered authentication methods. BAD: malformed, or "no authentication" is not among them. *len: of the greeting.
 */
enum socks_outcome socks_greeting_parse(const uint8_t *bytes, size_t have, size_t *len);

struct socks_request {
	size_t   len;
	uint8_t  command, kind; /* command: CONNECT is 1. kind: an IPv4 address is 1, a name 3, an IPv6 address 4 */
	char     host[256];     /* text of the address, or the name as sent: any bytes, zeros as well */
	size_t   host_len;
	uint16_t port;
};
enum { SOCKS_CONNECT = 1 };
enum socks_outcome socks_request_parse(const uint8_t *bytes, size_t have, struct socks_request *ret);

size_t socks_print_refusal(enum net_reason reason, char text[SOCKS_REPLY_MAX]);
size_t socks_print_success(char text[SOCKS_REPLY_MAX]);
