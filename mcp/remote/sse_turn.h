/*
 * sse_turn.h - what HTTP+SSE needs in each turn of the loop: it opens the stream, then sends the POSTs that wait for the
 * endpoint, or fails them.
 */
#pragma once
#include "remote.h"

void sse_turn(struct remote *r, int64_t now_ms);
