/*
 * proxy_exchange.h - HTTP requests and their replies, one after the other over one connection
 *
 * A request head is read whole, judged, and written anew. The body is framed anew, and bytes behind it are the next
 * request, which is judged like the first one. It is read when the reply is complete (reply.h), if program and server
 * keep the connection; with secrets, their bytes are masked in the reply. All this in plain text, or inside TLS that
 * brig-proxy terminates (tls_end.h). After "101 Switching Protocols" it is a tunnel, in which secrets of the server
 * stay masked.
 */
#pragma once

struct connection;

void exchange_start(struct connection *c);
/* Bytes of any protocol. */
void tunnel_start(struct connection *c);
