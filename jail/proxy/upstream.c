#define _GNU_SOURCE
#include "upstream.h"

#include "http_line.h"
#include "proxy.h"
#include "text.h"

#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { ANSWER_MAX = 8192 };

bool upstream_is_used(const struct connection *c)
{
	return connection_proxy(c)->config->upstream[0] != 0;
}

/* "[::1]:3128" and "proxy.example:3128" */
bool upstream_parse(const char *text, char host[NET_HOST_MAX], uint16_t *port, bool *is_address)
{
	const char   *colon = strrchr(text, ':');
	size_t        len   = colon ? (size_t)(colon - text) : 0;
	char         *end   = NULL;
	unsigned long n     = colon ? strtoul(colon + 1, &end, 10) : 0;

	if (n == 0 || n > UINT16_MAX || *end)
		return false;
	if (len > 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	*port = (uint16_t)n;
	return net_host_canonicalize(text, len, host, is_address);
}

void upstream_get_host(const struct connection *c, char host[NET_HOST_MAX], uint16_t *port, bool *is_address)
{
	if (!upstream_parse(connection_proxy(c)->config->upstream, host, port, is_address)) {
		(void)snprintf(host, NET_HOST_MAX, "invalid");
		*is_address = false;
	}
}

/* --- its answer --- */

/* epoll wakes when one byte more is there. False: it woke without one, so this is end of file, and it would wake again
 * and again. */
static bool raise_receive_low_water(int fd, int least)
{
	int       before = 0;
	socklen_t len    = sizeof before;

	return getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &before, &len) == 0 && before < least &&
	       setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least) == 0;
}

/*
 * The answer is peeked at, then read exactly up to the empty line: bytes behind it come from the server. DEADLINE_DIAL
 * bounds the time for an answer.
 */
static void on_upstream_answer(struct connection *c)
{
	char    answer[ANSWER_MAX + 1];
	ssize_t n = recv(c->server.source.fd, answer, ANSWER_MAX, MSG_PEEK | MSG_DONTWAIT);
	char   *end;

	if (n <= 0) {
		connection_fail(c, NET_REASON_UNREACHABLE);
		return;
	}
	answer[n] = 0;
	end       = strstr(answer, "\r\n\r\n");
	if (!end && n < ANSWER_MAX && raise_receive_low_water(c->server.source.fd, (int)n + 1))
		return;
	if (!end || !begins_with(answer, "HTTP/1.") || answer[8] != ' ' || answer[9] != '2' ||
	    recv(c->server.source.fd, answer, (size_t)(end + 4 - answer), 0) < 0) {
		connection_fail(c, NET_REASON_UNREACHABLE);
		return;
	}
	(void)setsockopt(c->server.source.fd, SOL_SOCKET, SO_RCVLOWAT, &(int){ 1 }, sizeof(int));
	c->reached = REACHED_SERVER;
	connection_watch_events(c, 0, 0);
	c->next(c);
}

void upstream_send_connect(struct connection *c)
{
	char   authority[HTTP_AUTHORITY_MAX], ask[2 * NET_HOST_MAX + 128];
	size_t moved = 0;
	int    len;

	http_print_authority(c->host, c->port, authority);
	len = snprintf(ask, sizeof ask, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", authority, authority);
	c->on_server = on_upstream_answer;
	if (side_write(&c->server, ask, (size_t)len, &moved) != TLS_MOVED ||
	    moved != (size_t)len) { /* a new socket's buffer has room */
		connection_fail(c, NET_REASON_UNREACHABLE);
		return;
	}
	connection_await_server(c, EPOLLIN);
	connection_set_deadline(c, DEADLINE_DIAL);
}
