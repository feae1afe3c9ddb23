/*
 * upstream.h - through the host's own HTTP proxy
 *
 * For hosts that reach the Internet only through such a proxy. It gets the name and resolves it, so addresses are not
 * judged here. Its answer is read and not passed on.
 */
#pragma once
#include "net_rule.h"

struct connection;

bool upstream_is_used(const struct connection *c);
/* Where that proxy is. A malformed configuration gives the name "invalid", which never resolves. */
void upstream_get_host(const struct connection *c, char host[NET_HOST_MAX], uint16_t *port, bool *is_address);
/* Call it when the server's side is connected to that proxy. Ends as dial_start() does. */
void upstream_send_connect(struct connection *c);
/* "HOST:PORT" of the configuration. */
must_use bool upstream_parse(const char *text, char host[NET_HOST_MAX], uint16_t *port, bool *is_address);
