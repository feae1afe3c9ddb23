/*
 * look.h - what does the program say to the host that it asked for?
 *
 * TLS, whose ClientHello must name that host (SNI), or HTTP, whose Host must. Anything else is refused: it could be
 * for another host behind the same address (fronting), or no reader could tell what it is.
 */
#pragma once

struct connection;

/* Ends in connection_next() with scheme and carry known, or in connection_refuse(). */
void look_begin(struct connection *c);
