/*
 * upstream.h - through the host's own HTTP proxy
 *
 * Where only that proxy reaches the world it resolves, too: it is told the name, and addresses are not judged. Its answer
 * is read and not passed on.
 */
#pragma once
#include "net_rule.h"

struct connection;

bool upstream_is_used(const struct connection *c);
/* Where it is. A text that is none leads to a name that nothing has. */
void upstream_host(const struct connection *c, char host[NET_HOST_MAX], uint16_t *port, bool *is_address);
/* The server's side is connected to it. Ends as dial_begin() does. */
void upstream_begin(struct connection *c);
/* "HOST:PORT" of the configuration. */
must_use bool upstream_parse(const char *text, char host[NET_HOST_MAX], uint16_t *port, bool *is_address);
