/*
 * sse_turn.h - between two turns of libcurl: the stream of HTTP+SSE is opened, what waits for its endpoint is sent, or told that there is none.
 */
#pragma once
#include "remote.h"

void sse_turn(struct remote *r, int64_t now_ms);
