/* tunnel.h - bytes in both directions, not looked at */
#pragma once

struct connection;

/* What the program said already goes first. */
void tunnel_begin(struct connection *c);
