#define _GNU_SOURCE
#include "look.h"

#include "client_hello.h"
#include "proxy.h"
#include "request_head.h"

static void apply_detected_protocol(struct connection *c, enum net_scheme scheme, enum carry carry)
{
	struct net_target target = { c->host, c->port, scheme };

	c->scheme     = scheme;
	c->carry      = carry;
	c->permission = permission_find(&c->run->policy, &target);
	if (c->permission.reason == NET_REASON_NONE && c->dial.is_judged_private && !c->permission.is_private)
		c->permission.reason = NET_REASON_NOT_PUBLIC; /* it was dialed by a rule for another scheme */
	if (c->permission.reason != NET_REASON_NONE) {
		connection_refuse(c, c->permission.reason);
		return;
	}
	if (scheme == NET_SCHEME_HTTPS && permission_needs_inspection(&c->run->policy, &target))
		c->carry = CARRY_INSIDE;
	c->next(c);
}

/* An address is no server name (RFC 6066, 3): a client that connects to one sends none. */
static void judge_client_hello(struct connection *c, const struct client_hello *hello)
{
	if (!hello->has_sni && !c->is_address)
		connection_refuse(c, NET_REASON_NO_NAME);
	else if (hello->has_sni && strcmp(hello->sni, c->host) != 0)
		connection_refuse(c, NET_REASON_OTHER_NAME);
	else
		apply_detected_protocol(c, NET_SCHEME_HTTPS, CARRY_TUNNEL);
}

static void judge_first_request(struct connection *c, const struct request_head *head)
{
	if (head->scheme == NET_SCHEME_HTTPS || head->form == REQUEST_AUTHORITY)
		connection_refuse(c, NET_REASON_BAD_REQUEST);
	else if (strcmp(head->host, c->host) != 0 || (head->port && head->port != c->port))
		connection_refuse(c, NET_REASON_OTHER_NAME);
	else
		apply_detected_protocol(c, NET_SCHEME_HTTP, CARRY_REQUEST);
}

/* True: the connection went on or was refused. False: more bytes are needed. */
static bool detect_protocol(struct connection *c)
{
	struct client_hello hello;
	struct request_head head;
	const char         *why;
	const char         *bytes = buffer_at(&c->received);
	size_t              len   = buffer_left(&c->received);

	switch (client_hello_parse((const uint8_t *)bytes, len, &hello)) {
	case HELLO_MORE:
		return false;
	case HELLO_DONE:
		judge_client_hello(c, &hello);
		return true;
	case HELLO_BAD:
		connection_refuse(c, NET_REASON_NO_NAME);
		return true;
	case HELLO_NOT_TLS:
		break;
	}
	if (bytes[0] < 'A' || bytes[0] > 'Z') { /* HTTP methods are in capitals */
		connection_refuse(c, NET_REASON_NOT_TLS);
		return true;
	}
	c->awaits_reply = true;
	if (!connection_has_line(c))
		return false;
	switch (request_head_parse(bytes, len, &head, &why)) {
	case HTTP_MORE:
		return false;
	case HTTP_BAD:
		connection_refuse(c, NET_REASON_BAD_REQUEST);
		return true;
	case HTTP_DONE:
		break;
	}
	judge_first_request(c, &head);
	return true;
}

static void read_and_detect(struct connection *c)
{
	enum tls_outcome result;

	do {
		if (buffer_left(&c->received) && detect_protocol(c))
			return;
		result = connection_read(c, HTTP_HEAD_MAX);
	} while (result == TLS_MOVED);
	if (result == TLS_END && buffer_left(&c->received) == 0)
		connection_close_and_free(c, false); /* nothing was sent: a probe of the port */
	else if (result == TLS_END || result == TLS_FAILED)
		connection_refuse(c, buffer_left(&c->received) ? NET_REASON_BAD_REQUEST : NET_REASON_NO_MEMORY);
}

void look_start_detection(struct connection *c)
{
	c->looked    = 0;
	c->on_client = read_and_detect;
	c->on_server = connection_reset;
	connection_set_deadline(c, DEADLINE_REQUEST);
	read_and_detect(c);
}
