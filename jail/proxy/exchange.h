/*
 * exchange.h - one HTTP request and its reply
 *
 * The request head is read whole, judged, and written anew. The body is framed anew, and bytes behind it are never forwarded. The
 * reply passes unchanged up to end of file; where secrets were set, their bytes are masked. All this in plain text, or inside TLS that
 * brig-proxy terminates (tls_end.h). After "101 Switching Protocols" it is a tunnel, in which secrets of the server stay masked.
 */
#pragma once

struct connection;

void exchange_begin(struct connection *c);
