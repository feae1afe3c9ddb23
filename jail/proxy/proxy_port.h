/*
 * proxy_port.h - the protocols of the proxy port: HTTP or SOCKS5, by the first byte
 */
#pragma once

struct connection;

/* Ends in connection_set_host(), or in a refusal. */
void proxy_port_start(struct connection *c);
/* The host is dialed: sends the program its confirmation. Ends in next(), or in connection_close_and_free(). */
void proxy_port_confirm(struct connection *c);
/* After connection_start_over(): reads the request that is in received already. */
void proxy_port_read_next_request(struct connection *c);
