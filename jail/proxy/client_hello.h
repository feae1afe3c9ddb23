/*
 * client_hello.h - the first message of a TLS client: which server does it name?
 *
 * Pure and stateless: the caller passes all bytes since the connection began, and
 * calls again when more have come. The bytes go on unchanged afterwards.
 * RFC 8446, 4.1.2 and 5.1; the message may be spread over records.
 */
#pragma once
#include "net_rule.h"

/* a longer message is bad; so is an incomplete one with as many bytes, record headers included */
enum { CLIENT_HELLO_MAX = 16 * 1024 };

enum hello_outcome {
	HELLO_MORE,    /* not all of it is there */
	HELLO_NOT_TLS, /* the first bytes are of another protocol */
	HELLO_BAD,     /* begins like TLS, and is malformed */
	HELLO_DONE,
};

struct client_hello {
	/* exactly one host name, in canonical form; two names or an invalid one are HELLO_BAD */
	bool has_sni;
	bool has_ech;           /* encrypted_client_hello: the inner name may differ from sni (or it is GREASE) */
	bool has_alpn, offers_http1; /* offers_http1: "http/1.1" is among the protocols, or there are none */
	char sni[NET_HOST_MAX]; /* an address is no name: HELLO_BAD (RFC 6066, 3) */
};

enum hello_outcome client_hello_parse(const uint8_t *bytes, size_t len, struct client_hello *ret);
