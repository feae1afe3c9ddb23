#include "client_hello.h"
#include "bytes.h"

#include <string.h>

enum {
	RECORD_HANDSHAKE = 22,
	RECORD_HEADER    = 5,
	RECORD_MAX       = 16384, /* RFC 8446, 5.1 */
	CLIENT_HELLO     = 1,
	MESSAGE_HEADER   = 4,
	EXTENSIONS_MAX   = 128, /* clients send some 20 */
	EXT_SERVER_NAME  = 0,
	EXT_ALPN         = 16,
	EXT_ECH          = 0xfe0d,
};

/* --- records: the message without their headers --- */

/* Length of a handshake message with its header; of the header alone while that is incomplete. */
static size_t message_length(const uint8_t *message, size_t len)
{
	return len < MESSAGE_HEADER
		       ? MESSAGE_HEADER
		       : MESSAGE_HEADER + ((size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3]);
}

/* Appends the payload of one record to the message, or as much of it as is there. */
static enum hello_outcome join_record(struct bytes_left *b, uint8_t *message, size_t *len)
{
	size_t n, have;

	if (b->left && b->at[0] != RECORD_HANDSHAKE)
		return HELLO_BAD;
	if (b->left < RECORD_HEADER)
		return HELLO_MORE;
	if (b->at[1] != 3)
		return HELLO_BAD;
	take_number(b, 3);
	n = take_number(b, 2);
	/* an empty handshake record is forbidden, and costs nothing to send */
	if (n == 0 || n > RECORD_MAX || *len + n > CLIENT_HELLO_MAX)
		return HELLO_BAD;
	have = n < b->left ? n : b->left;
	if (have) /* memcpy() wants no NULL */
		memcpy(message + *len, take_bytes(b, have), have);
	*len += have;
	if (*len && message[0] != CLIENT_HELLO)
		return HELLO_BAD;
	return have < n ? HELLO_MORE : HELLO_DONE;
}

/* A client sends no other handshake message before it has an answer, so the last record ends with this one. message
 * holds CLIENT_HELLO_MAX. */
static enum hello_outcome join_records(struct bytes_left b, uint8_t *message, size_t *len)
{
	enum hello_outcome outcome = HELLO_DONE;

	*len = 0;
	while (outcome == HELLO_DONE && *len < message_length(message, *len))
		outcome = join_record(&b, message, len);
	if (outcome != HELLO_BAD &&
	    (message_length(message, *len) > CLIENT_HELLO_MAX || *len > message_length(message, *len)))
		return HELLO_BAD;
	return outcome;
}

/* --- extensions --- */

static bool parse_server_name(struct bytes_left data, struct client_hello *ret)
{
	struct bytes_left list = take_part(&data, 2), name;
	bool              is_address;

	if (data.left || take_number(&list, 1) != 0)
		return false;
	name = take_part(&list, 2);
	if (name.has_failed || list.left) /* two names: which would the server take? */
		return false;
	ret->has_sni = net_host_canonicalize((const char *)name.at, name.left, ret->sni, &is_address) && !is_address;
	return ret->has_sni;
}

static bool parse_alpn(struct bytes_left data, struct client_hello *ret)
{
	static const char http1[] = "http/1.1";
	struct bytes_left list    = take_part(&data, 2);

	if (data.left || list.has_failed || !list.left)
		return false;
	ret->has_alpn     = true;
	ret->offers_http1 = false;
	while (list.left) {
		struct bytes_left name = take_part(&list, 1);

		if (name.has_failed || !name.left)
			return false;
		ret->offers_http1 |= name.left == sizeof http1 - 1 && memcmp(name.at, http1, name.left) == 0;
	}
	return true;
}

static bool parse_extension(unsigned type, struct bytes_left data, struct client_hello *ret)
{
	switch (type) {
	case EXT_SERVER_NAME:
		return parse_server_name(data, ret);
	case EXT_ALPN:
		return parse_alpn(data, ret);
	case EXT_ECH:
		ret->has_ech = true;
		return true;
	default:
		return true;
	}
}

static bool extension_was_seen(unsigned type, uint16_t seen[EXTENSIONS_MAX], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (seen[i] == type)
			return true;
	return false;
}

static bool parse_extensions(struct bytes_left b, struct client_hello *ret)
{
	uint16_t seen[EXTENSIONS_MAX];
	size_t   n = 0;

	while (b.left) {
		unsigned          type = take_number(&b, 2);
		struct bytes_left data = take_part(&b, 2);

		if (b.has_failed || n == EXTENSIONS_MAX || extension_was_seen(type, seen, n) ||
		    !parse_extension(type, data, ret))
			return false;
		seen[n++] = (uint16_t)type;
	}
	return true;
}

/* RFC 8446, 4.1.2 (and RFC 5246, 7.4.1.2). */
static bool parse_hello(struct bytes_left b, struct client_hello *ret)
{
	struct bytes_left session, suites, methods, extensions;

	take_number(&b, MESSAGE_HEADER);
	if (take_number(&b, 1) != 3)
		return false;
	take_bytes(&b, 1 + 32); /* the other half of the version, and random */
	session = take_part(&b, 1);
	suites  = take_part(&b, 2);
	methods = take_part(&b, 1);
	if (b.has_failed || session.left > 32 || suites.left < 2 || suites.left % 2 || !methods.left)
		return false;
	if (!b.left) /* TLS 1.2 without extensions */
		return true;
	extensions = take_part(&b, 2);
	return !extensions.has_failed && !b.left && parse_extensions(extensions, ret);
}

enum hello_outcome client_hello_parse(const uint8_t *bytes, size_t len, struct client_hello *ret)
{
	uint8_t             message[CLIENT_HELLO_MAX];
	size_t              message_len;
	struct client_hello hello = { .offers_http1 = true };
	enum hello_outcome  outcome;

	if (len >= 1 && bytes[0] != RECORD_HANDSHAKE)
		return HELLO_NOT_TLS;
	outcome = join_records((struct bytes_left){ bytes, len, false }, message, &message_len);
	if (outcome == HELLO_MORE && len >= CLIENT_HELLO_MAX)
		return HELLO_BAD;
	if (outcome != HELLO_DONE)
		return outcome;
	if (!parse_hello((struct bytes_left){ message, message_len, false }, &hello))
		return HELLO_BAD;
	*ret = hello;
	return HELLO_DONE;
}
