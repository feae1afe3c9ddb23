/*
 * exchange.h - one HTTP request and its reply
 *
 * The request is read whole, judged, and written anew; its body is framed anew, and what follows it goes nowhere. The reply passes
 * as it is, up to the end of file; where a secret was set, without its bytes. Plain, or inside TLS that ends here
 * (tls_end.h). After "101 Switching Protocols" it is a tunnel.
 */
#pragma once

struct connection;

void exchange_begin(struct connection *c);
