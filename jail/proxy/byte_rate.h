/*
 * byte_rate.h - a limit in bytes per second, shared by all connections of a run
 *
 * A token bucket that holds a tenth of a second: what is not used by then is lost.
 * Connections that find it empty stop reading, and are woken when it fills again.
 */
#pragma once
#include "loop.h"

struct byte_rate {
	struct loop      *loop;
	uint64_t          per_second; /* 0: no bound */
	int64_t           at_ms;
	uint64_t          left;
	struct loop_timer timer;
};

void byte_rate_init(struct byte_rate *r, struct loop *loop, uint64_t per_second, void (*wake)(void *owner),
		    void *owner);
/* Bytes that may be read now. SIZE_MAX: no bound. 0: the bucket is empty, and wake is called later. */
size_t byte_rate_left(struct byte_rate *r);
void   byte_rate_spend(struct byte_rate *r, size_t bytes);
void   byte_rate_done(struct byte_rate *r);
