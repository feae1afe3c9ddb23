/*
 * proxy_port.h - what a program says that knows of the proxy: HTTP or SOCKS5, told by the first byte
 */
#pragma once

struct connection;

/* Ends in connection_name(), or in a refusal. */
void proxy_port_begin(struct connection *c);
/* The host is dialed: the program is told to go on. Ends in connection_next(). */
void proxy_port_tell(struct connection *c);
