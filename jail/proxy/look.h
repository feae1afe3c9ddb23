/*
 * look.h - what does the program send to the host that it asked for?
 *
 * TLS with a ClientHello that names this host (SNI), or HTTP with a Host that does. Anything else is refused: it could
 * be meant for another host behind the same address (fronting), or cannot be checked at all.
 */
#pragma once

struct connection;

/* Ends in next() with scheme and carry known, or in connection_refuse(). */
void look_start_detection(struct connection *c);
