#define _GNU_SOURCE
#include "proxy_port.h"

#include "proxy.h"
#include "request_head.h"
#include "socks.h"

#include <arpa/inet.h>
#include <stdio.h>

/* --- HTTP and SOCKS --- */

/* An address from the run's name table stands for its name: a program may resolve the name before it asks the proxy. */
static void connection_name_or_address(struct connection *c, const char *host, uint16_t port, bool is_address,
				       enum net_scheme scheme)
{
	struct in_addr four;
	const char    *meant = NULL;

	if (is_address && inet_pton(AF_INET, host, &four) == 1)
		meant = name_table_name_of_address(&c->run->names, ntohl(four.s_addr));
	if (meant)
		connection_set_host(c, meant, port, false, scheme);
	else
		connection_set_host(c, host, port, is_address, scheme);
}

/* The program ended its side, or reading failed, before the request was complete. */
static void end_incomplete_request(struct connection *c)
{
	if (buffer_left(&c->received))
		connection_refuse(c, NET_REASON_BAD_REQUEST);
	else
		connection_close_and_free(c, false);
}

/* --- HTTP --- */

static void handle_first_request(struct connection *c, const struct request_head *head)
{
	if (head->form == REQUEST_AUTHORITY && head->port) {
		c->via = VIA_CONNECT;
		buffer_take(&c->received, head->len);
		connection_name_or_address(c, head->host, head->port, head->is_address, NET_SCHEME_ANY);
	} else if (head->form == REQUEST_ABSOLUTE && head->scheme == NET_SCHEME_HTTP) {
		c->via   = VIA_REQUEST;
		c->carry = CARRY_REQUEST;
		connection_name_or_address(c, head->host, head->port ? head->port : 80, head->is_address,
					   NET_SCHEME_HTTP);
	} else {
		connection_refuse(c, NET_REASON_BAD_REQUEST);
	}
}

static void read_first_http_request(struct connection *c)
{
	struct request_head head;
	enum tls_outcome    result;

	c->awaits_reply = true;
	switch (connection_read_request(c, &head, &result)) {
	case HTTP_DONE:
		handle_first_request(c, &head);
		return;
	case HTTP_BAD:
		connection_refuse(c, NET_REASON_BAD_REQUEST);
		return;
	case HTTP_MORE:
		break;
	}
	if (result == TLS_END || result == TLS_FAILED)
		end_incomplete_request(c);
}

void proxy_port_read_next_request(struct connection *c)
{
	c->on_client = read_first_http_request;
	connection_set_deadline(c, DEADLINE_REQUEST);
	read_first_http_request(c);
}

/* --- SOCKS --- */

static void write_all_or_close(struct connection *c, const char *text, size_t len, void (*then)(struct connection *c))
{
	size_t moved = 0;

	if (side_write(&c->client, text, len, &moved) == TLS_MOVED && moved == len) /* a new socket's buffer has room */
		then(c);
	else
		connection_close_and_free(c, true);
}

static void handle_socks_request(struct connection *c, const struct socks_request *r)
{
	char host[NET_HOST_MAX];
	bool is_address;

	buffer_take(&c->received, r->len);
	if (r->command != SOCKS_CONNECT || r->port == 0)
		connection_refuse(c, NET_REASON_BAD_REQUEST);
	else if (!net_host_canonicalize(r->host, r->host_len, host, &is_address))
		connection_refuse(c, NET_REASON_BAD_NAME);
	else
		connection_name_or_address(c, host, r->port, is_address, NET_SCHEME_ANY);
}

static void read_socks_request(struct connection *c)
{
	struct socks_request r;
	enum tls_outcome     result;

	c->on_client = read_socks_request;
	do {
		enum socks_outcome outcome =
			socks_request_parse((const uint8_t *)buffer_at(&c->received), buffer_left(&c->received), &r);

		if (outcome == SOCKS_DONE) {
			handle_socks_request(c, &r);
			return;
		}
		if (outcome == SOCKS_BAD) {
			connection_refuse(c, NET_REASON_BAD_REQUEST);
			return;
		}
		result = connection_read(c, SOCKS_MAX);
	} while (result == TLS_MOVED);
	if (result == TLS_END || result == TLS_FAILED)
		end_incomplete_request(c);
}

static void read_socks_methods(struct connection *c)
{
	static const char no_password[] = { SOCKS_VERSION, 0 };
	size_t            len;
	enum tls_outcome  result;

	do {
		enum socks_outcome outcome =
			socks_greeting_parse((const uint8_t *)buffer_at(&c->received), buffer_left(&c->received), &len);

		if (outcome == SOCKS_DONE) {
			buffer_take(&c->received, len);
			write_all_or_close(c, no_password, sizeof no_password, read_socks_request);
			return;
		}
		if (outcome == SOCKS_BAD) {
			connection_close_and_free(c, true);
			return;
		}
		result = connection_read(c, SOCKS_MAX);
	} while (result == TLS_MOVED);
	if (result == TLS_END || result == TLS_FAILED)
		connection_close_and_free(c, false);
}

/* --- the first byte, and the reply --- */

static void read_first_byte(struct connection *c)
{
	enum tls_outcome result = connection_read(c, HTTP_HEAD_MAX);

	if (result == TLS_END || result == TLS_FAILED) {
		connection_close_and_free(c, false);
		return;
	}
	if (result != TLS_MOVED)
		return;
	if (*buffer_at(&c->received) == SOCKS_VERSION) {
		c->via       = VIA_SOCKS;
		c->on_client = read_socks_methods;
	} else {
		c->via       = VIA_CONNECT;
		c->on_client = read_first_http_request;
	}
	c->on_client(c);
}

void proxy_port_start(struct connection *c)
{
	c->via       = VIA_CONNECT;
	c->on_client = read_first_byte;
	connection_set_deadline(c, DEADLINE_REQUEST);
	read_first_byte(c);
}

static void continue_after_confirm(struct connection *c)
{
	c->reached      = REACHED_CONFIRMED;
	c->awaits_reply = false;
	c->next(c);
}

void proxy_port_confirm(struct connection *c)
{
	static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	char              reply[SOCKS_REPLY_MAX];

	if (c->via == VIA_SOCKS)
		write_all_or_close(c, reply, socks_print_success(reply), continue_after_confirm);
	else
		write_all_or_close(c, established, sizeof established - 1, continue_after_confirm);
}
