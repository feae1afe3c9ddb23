/*
 * sse_turn.h - HTTP+SSE in each turn of the loop: opens the stream, then sends the POSTs that wait for its endpoint
 */
#pragma once
#include "remote.h"

void sse_turn(struct remote *r, int64_t now_ms);
