/* tunnel.h - bytes in both directions, not looked at */
#pragma once

struct connection;

/* The bytes in c->received go first. */
void tunnel_begin(struct connection *c);
